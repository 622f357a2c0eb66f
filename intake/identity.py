"""Who owns a memory: decided once, at the edge, from what the credential proves.

The key's own owner, by default. The identity headers count only for a key minted with impersonation whose owner is an
admin; from any other key they are ignored, and the answer says which.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

from cachetools import LRUCache

from gateways import ledger
from gateways.key_store import KeyStore
from models import subject as subjects
from models.api_key import Credential
from models.database import Connection, Database
from models.subject import SEALED_HANDLE, HandleKind
from privacy.hashing import fold

CANONICAL = "X-Canonical-User"
END_USER = "X-End-User"
CHANNEL = "X-Channel-Sender"
PLATFORM = "X-Platform-User"  # a legacy selector of stored logs; never an authority, so it never selects here
HEADERS = (CANONICAL, END_USER, CHANNEL, PLATFORM)

_KIND = {CANONICAL: HandleKind.CANONICAL_USER, END_USER: HandleKind.END_USER, CHANNEL: HandleKind.CHANNEL}
_LOWER = {name: name.lower() for name in HEADERS}  # as they come in
_LONGEST = 512  # characters of a handle


class InvalidHandle(Exception):
    """A handle that cannot name anybody; the message says where and why, never the value."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says about who it speaks for, after the credential was weighed. Values are unhashed: memory only."""

    owner: tuple[HandleKind, str] | None
    speaker: tuple[HandleKind, str] | None
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose log (`owner`) and whose conversations (`speaker`); None where nobody of that handle is known."""

    kind: str
    owner: UUID | None
    speaker: UUID | None
    ignored: tuple[str, ...]


def weigh(credential: Credential, headers: Mapping[str, str]) -> Claim:
    """Which of the request's identity headers count."""
    present = [name for name, lower in _LOWER.items() if headers.get(lower, "").strip()]
    if not credential.impersonates:
        return Claim(None, None, tuple(present))
    named = {name: _handle(name, headers[_LOWER[name]]) for name in present if name in _KIND}
    owner = named.get(CANONICAL)
    speaker = named.get(END_USER) or named.get(CHANNEL) or owner
    return Claim(owner, speaker, tuple(name for name in present if name not in _KIND))


@dataclass(slots=True)
class People:
    """Finds subjects by their handles, and introduces new ones. One per process."""

    database: Database
    keys: KeyStore
    _known: "LRUCache[tuple[int, str, bytes], UUID]" = field(default_factory=lambda: LRUCache(maxsize=100_000))
    _reborn: "LRUCache[tuple[UUID, ...], datetime | None]" = field(default_factory=lambda: LRUCache(maxsize=100_000))

    async def find(self, credential: Credential, claim: Claim) -> Identity:
        """For reading: a handle that nobody has gives None, and nobody is made."""
        owner = await self._subject(credential, claim.owner, make=False)
        speaker = owner if claim.speaker == claim.owner else await self._subject(credential, claim.speaker, make=False)
        return Identity(_owner_kind(credential, claim), owner, speaker, claim.ignored)

    async def meet(self, credential: Credential, claim: Claim) -> Identity:
        """For writing: a handle that nobody has gets a new subject, with a key of its own."""
        owner = await self._subject(credential, claim.owner, make=True)
        speaker = owner if claim.speaker == claim.owner else await self._subject(credential, claim.speaker, make=True)
        return Identity(_owner_kind(credential, claim), owner, speaker, claim.ignored)

    async def reborn_at(self, space: int, *people: UUID) -> datetime | None:
        """When an earlier life of one of them was erased: what was said before that must not come in again."""
        if people not in self._reborn:
            async with self.database.pool.acquire() as connection, connection.transaction():
                await bind_space(connection, space)
                self._reborn[people] = await subjects.reborn_at(connection, space, people)
        return self._reborn[people]

    async def is_from_before(self, space: int, arrived: datetime, *people: UUID) -> bool:
        """Whether what arrived then came before an earlier life of one of them was erased."""
        erased_at = await self.reborn_at(space, *people)
        return erased_at is not None and arrived <= erased_at

    async def was_heard(self, space: int, claim: Claim, call: bytes) -> bool:
        """Whether a call of that name came in from one of the claim's handles before it was erased."""
        key = await ledger.suppression_key(self.keys)
        handles = [ledger.suppression_digest(key, space, *handle) for handle in (claim.owner, claim.speaker) if handle]
        return await ledger.knows_call(self.keys, ledger.call_digest(key, space, call), handles)

    def forget(self, *gone: UUID | None) -> None:
        """Drops what this process knows about subjects that a write found erased."""
        self.forget_all({subject for subject in gone if subject is not None})

    def forget_all(self, gone: set[UUID]) -> None:
        """Drops what this process knows about subjects that were erased."""
        for handle in [handle for handle, subject in self._known.items() if subject in gone]:
            self._known.pop(handle, None)
        self.keys.forget_all(gone)

    async def _subject(
        self, credential: Credential, handle: tuple[HandleKind, str] | None, *, make: bool
    ) -> UUID | None:
        if handle is None:
            return credential.owner
        return await self.subject(credential.space, credential.lookup_key, handle, make=make)

    async def subject(self, space: int, lookup_key: UUID, handle: tuple[HandleKind, str], *, make: bool) -> UUID | None:
        """The subject of one handle in a space."""
        kind, value = handle
        lookup = await self.keys.key(lookup_key)
        digest = lookup.digest(fold(kind, value), f"handle/{kind}")
        known = self._known.get((space, kind, digest))
        if known is None:
            known = await self._look_up(space, kind, digest)
            if known is None and make:
                known = await self._introduce(space, kind, digest, value)
            if known is not None:
                self._known[(space, kind, digest)] = known
        return known

    async def _look_up(self, space: int, kind: str, digest: bytes) -> UUID | None:
        async with self.database.pool.acquire() as connection, connection.transaction():
            await bind_space(connection, space)
            return await subjects.find(connection, space, kind, digest)

    async def _introduce(self, space: int, kind: str, digest: bytes, value: str) -> UUID:
        # The key first: a crash in between leaves a key that opens nothing, never a person without one.
        key = await self.keys.make(uuid4(), "subject")
        sealed = key.seal(value, SEALED_HANDLE)
        suppression = await ledger.suppression_key(self.keys)
        erased = await ledger.reborn_at(self.keys, ledger.suppression_digest(suppression, space, kind, value))
        async with self.database.pool.acquire() as connection, connection.transaction():
            await bind_space(connection, space)
            return await subjects.introduce(connection, space, key.id, (kind, digest, sealed), erased)


async def bind_space(connection: Connection, space: int) -> None:
    """Row-level security lets this transaction see one space."""
    await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(space))


def _owner_kind(credential: Credential, claim: Claim) -> str:
    return claim.owner[0] if claim.owner else credential.owner_kind


def _handle(header: str, raw: str) -> tuple[HandleKind, str]:
    value = _utf8(raw).strip()
    if len(value) > _LONGEST:
        raise InvalidHandle(header, f"takes at most {_LONGEST} characters")
    if not value.isprintable():
        raise InvalidHandle(header, "takes printable characters only")
    if header == CHANNEL and not all(value.partition(":")[::2]):
        raise InvalidHandle(header, "takes type:id")
    return _KIND[header], value


def _utf8(raw: str) -> str:
    # HTTP gives header values as Latin-1; chat servers send UTF-8.
    try:
        return raw.encode("latin-1").decode()
    except UnicodeError:
        return raw
