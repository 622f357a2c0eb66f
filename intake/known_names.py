"""Does a text name somebody whom the space knows? By hashes alone: no name is opened for it, whoever's it is."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from gateways.key_store import KeyStore
from models import name as names
from models.database import Database, driver
from models.name import SEALED_NAME
from models.subject import HandleKind
from privacy.gram import Words, phrases
from privacy.hashing import fold
from privacy.sealing import SealingKey

PERSON_NAME = "person_name"  # whether by a name or by a handle: the answer must not tell which

_KINDS = tuple(kind for kind in HandleKind if kind is not HandleKind.KEY)
_AT_ONCE = 4_000  # hashes of one statement


async def kinds_found(database: Database, keys: KeyStore, space: int, lookup_key: UUID, text: str) -> tuple[str, ...]:
    """`("person_name",)` where a name or handle that the space registered for anybody stands whole in `text`, else ().

    `lookup_key` is the space's. A name of more than four words is found by its first four and then compared whole; one
    of a single word that is also an ordinary one counts only where it is written like a name. The cost is linear in the
    text: at most four hashes a word for names, four for each kind of handle.
    """
    key = await keys.key(lookup_key)
    words = Words.of(text)
    heads = await asyncio.to_thread(_heads, key, words)
    named = await _named(database, space, key, words, heads)
    called = await _called(database, space, await asyncio.to_thread(_handles, key, text))
    return (PERSON_NAME,) if named or called else ()


def _heads(key: SealingKey, words: Words) -> dict[bytes, list[int]]:
    return {key.digest(gram, SEALED_NAME): starts for gram, starts in words.grams().items()}


def _handles(key: SealingKey, text: str) -> list[tuple[str, bytes]]:
    spelt = {spelling for phrase in phrases(text) for spelling in (phrase, phrase.casefold())}
    return [(kind, key.digest(fold(kind, one), f"handle/{kind}")) for one in sorted(spelt) for kind in _KINDS]


async def _named(
    database: Database, space: int, key: SealingKey, words: Words, heads: Mapping[bytes, list[int]]
) -> bool:
    wanted, named = list(heads), False
    for first in range(0, len(wanted), _AT_ONCE):
        async with database.begin(space) as tx:
            found = await names.by_heads(await driver(tx), space, wanted[first : first + _AT_ONCE])
        named = named or any(
            words.name(start, length) and key.digest(words.run(start, length), SEALED_NAME) == whole
            for head, whole, length in found
            for start in heads[head]
        )
    return named


async def _called(database: Database, space: int, handles: list[tuple[str, bytes]]) -> bool:
    called = False
    for first in range(0, len(handles), _AT_ONCE):
        kinds, digests = zip(*handles[first : first + _AT_ONCE], strict=True)
        async with database.begin(space) as tx:
            called = await names.has_handle(await driver(tx), space, kinds, digests) or called
    return called
