"""API keys: which may be asked for, and by whom; minted and revoked the same way by the API and the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from intake.identity import People
from models import agent as agents
from models import api_key
from models import receipt as receipts
from models.api_key import ApiKey, Credential, Scope
from models.database import Connection, Database, driver
from models.receipt import Receipt
from models.subject import HandleKind
from privacy.hashing import api_secret, api_secret_digest


class AdminNeeded(Exception):
    """Only a key whose owner is an admin mints what speaks for anybody but the one who minted it."""


class ReviewsItself(Exception):
    """A key of one agent cannot review what agents propose."""


class OwnerErased(Exception):
    """Whose key it was to be was erased meanwhile."""


class OtherVendor(Exception):
    """The agent is registered for another vendor than the key was to be."""


class MinterRevoked(Exception):
    """The key that asked was revoked meanwhile."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key as it is asked for. `owner` None: the key owns its memory itself. ReviewsItself for what no key may have."""

    name: str
    scopes: tuple[Scope, ...]
    agent: str | None = None
    vendor: str | None = None
    owner: str | None = None
    admin: bool = False
    allow_impersonation: bool = False

    def __post_init__(self) -> None:
        if self.agent is not None and Scope.AGENT_MEMORY_REVIEW in self.scopes:
            raise ReviewsItself


@dataclass(frozen=True, slots=True)
class Minter:
    """Who mints, in which space: an operator at the command line, or a key, whose `credential` then bounds what it may."""

    actor: str
    space: int
    lookup_key: UUID
    credential: Credential | None = None


@dataclass(frozen=True, slots=True)
class Minted:
    """A new key. The secret is nowhere else."""

    id: str
    secret: str


def by_key(credential: Credential) -> Minter:
    """A key that mints, or revokes, in its own space."""
    return Minter(credential.key_id, credential.space, credential.lookup_key, credential)


async def mint(database: Database, people: People, minter: Minter, wanted: Wanted) -> Minted:
    """Stores a new key, and its owner where that one is new. AdminNeeded, OwnerErased, MinterRevoked, OtherVendor: none is stored."""
    minted = Minted(f"key_{uuid4().hex}", api_secret())
    handle = (HandleKind.KEY, minted.id) if wanted.owner is None else (HandleKind.OWNER, wanted.owner)
    await _check_rights(people, minter, wanted, handle)
    subject = await people.subject(minter.space, minter.lookup_key, handle, make=True)
    if subject is None:
        raise OwnerErased
    key = _key(minter, wanted, minted, (handle[0], subject))
    async with database.begin(minter.space) as tx:
        await _store(await driver(tx), minter, key, people)
    return minted


async def revoke(database: Database, minter: Minter, key_id: str) -> bool:
    """Ends a key, within a second in every process; False when the space has no such living key."""
    async with database.begin(minter.space) as tx:
        connection = await driver(tx)
        ended = await api_key.revoke(connection, minter.space, key_id)
        if ended:
            await receipts.write(connection, Receipt(minter.space, minter.actor, "key.revoked", {"key": key_id}))
    return ended


async def _check_rights(people: People, minter: Minter, wanted: Wanted, handle: tuple[HandleKind, str]) -> None:
    """A key that is no admin's mints keys that own themselves, or that are its own owner's; else it could read anybody."""
    by = minter.credential
    if by is None or by.admin:
        return
    if wanted.admin or wanted.allow_impersonation:
        raise AdminNeeded
    if wanted.owner is not None:
        owner = await people.subject(minter.space, minter.lookup_key, handle, make=False)
        if owner != by.owner:  # the same answer for whom nobody knows
            raise AdminNeeded


def _key(minter: Minter, wanted: Wanted, minted: Minted, owner: tuple[HandleKind, UUID]) -> ApiKey:
    return ApiKey(
        id=minted.id,
        space_id=minter.space,
        name=wanted.name,
        secret_digest=api_secret_digest(minted.secret),
        scopes=[str(scope) for scope in wanted.scopes],
        agent=wanted.agent,
        vendor=wanted.vendor,
        owner_kind=owner[0],
        owner_subject=owner[1],
        admin=wanted.admin,
        allow_impersonation=wanted.allow_impersonation,
    )


async def _store(connection: Connection, minter: Minter, key: ApiKey, people: People) -> None:
    if minter.credential is not None and not await api_key.lives(connection, minter.space, minter.credential.key_id):
        raise MinterRevoked
    if not await api_key.lock_owner(connection, minter.space, key.owner_subject):
        people.forget(key.owner_subject)
        raise OwnerErased
    if key.agent and key.vendor and await agents.vendor(connection, minter.space, key.agent) not in (None, key.vendor):
        raise OtherVendor
    await api_key.mint(connection, key)
    ids: dict[str, str | Sequence[str]] = {"key": key.id, "scopes": key.scopes}
    rights = [name for name in ("admin", "allow_impersonation") if getattr(key, name)]
    await receipts.write(
        connection, Receipt(minter.space, minter.actor, "key.minted", ids | ({"rights": rights} if rights else {}))
    )
