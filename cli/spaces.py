"""Finding a space by its name, and making it where an operator's command says so."""

import re
from dataclasses import dataclass
from uuid import UUID, uuid4

from cli.failure import Failed, WrongUse
from gateways.key_store import KeyStore
from models import space as spaces
from models.database import Database

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Place:
    """A space: its number, the key that its handles are hashed under, and whether it keeps contexts apart."""

    id: int
    lookup_key: UUID
    contexts: bool


async def find(database: Database, name: str) -> Place:
    """The space of that name; Failed when there is none."""
    found = await spaces.named(database.pool, name)
    if found is None:
        raise Failed(f"there is no space {name}: `afterturn keys create --space {name} …` makes it")
    return await _place(database, *found)


async def find_or_make(database: Database, keys: KeyStore, name: str) -> Place:
    """The space of that name, made with a key of its own where it does not exist."""
    if not _NAME.fullmatch(name):
        raise WrongUse("a space's name takes letters, digits, dots, dashes and underscores, at most 64")
    found = await spaces.named(database.pool, name)
    if found is None:
        # The key first: a crash in between leaves a key that opens nothing, never a space without one.
        key = await keys.make(uuid4(), "space")
        found = await spaces.make(database.pool, name, key.id)
    return await _place(database, *found)


async def _place(database: Database, space: int, lookup_key: UUID) -> Place:
    return Place(space, lookup_key, await spaces.keeps_contexts(database.pool, space))
