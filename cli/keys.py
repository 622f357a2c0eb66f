"""`afterturn keys`: minting, listing and revoking API keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, remark, table
from cli.owner import check_agent, checked
from cli.reach import with_stores
from cli.spaces import Place
from intake.identity import People
from jobs.resources import Resources
from models import api_key
from models import receipt as receipts
from models.api_key import ApiKey, Scope
from models.database import driver
from models.receipt import Receipt
from models.subject import HandleKind, opaque
from privacy.hashing import api_secret, api_secret_digest

_TITLES = ("ID", "NAME", "SCOPES", "AGENT", "VENDOR", "OWNER", "MAY", "MADE", "REVOKED")
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key as the command line asks for it. `scopes` by commas; `owner` None: the key owns its memory itself."""

    space: str
    name: str
    scopes: str
    agent: str | None = None
    vendor: str | None = None
    owner: str | None = None
    admin: bool = False
    allow_impersonation: bool = False

    def __post_init__(self) -> None:
        for option, name in (("--agent", self.agent), ("--vendor", self.vendor)):
            if name is not None:
                check_agent(name, option)
        if len(self.name) > _LONGEST_NAME or not self.name.isprintable():
            raise WrongUse(f"--name takes at most {_LONGEST_NAME} printable characters")

    def scope_list(self) -> list[str]:
        """The scopes, each once; WrongUse names what is known when one is not."""
        scopes = list(dict.fromkeys(part.strip() for part in self.scopes.split(",") if part.strip()))
        unknown = [scope for scope in scopes if scope not in set(Scope)]
        if unknown or not scopes:
            told = f"no scope is called {', '.join(map(repr, unknown))}" if unknown else "--scopes names none"
            raise WrongUse(f"{told}; the scopes are {', '.join(Scope)}")
        return scopes


@dataclass(frozen=True, slots=True)
class Minted:
    """A new key. The secret is nowhere else."""

    id: str
    secret: str


def create(wanted: Wanted, data_dir: Path | None, *, as_json: bool) -> None:
    """Mints the key and prints its secret, once."""
    wanted.scope_list()
    minted = with_stores(data_dir, lambda resources: mint(resources, wanted))
    if wanted.allow_impersonation and not wanted.admin:
        remark("Its owner is no admin, so identity headers on its requests will be ignored: --admin makes them count.")
    lines = [f"id      {minted.id}", f"secret  {minted.secret}"]
    answer({"id": minted.id, "secret": minted.secret}, lines, as_json=as_json)
    if not as_json:
        remark("The secret is shown this once. Requests carry it as  Authorization: Bearer <secret>")


async def mint(resources: Resources, wanted: Wanted) -> Minted:
    """Stores a new key, and its space and owner where they are new."""
    scopes = wanted.scope_list()
    place = await spaces.find_or_make(resources.database, resources.keys, wanted.space)
    minted = Minted(f"key_{uuid4().hex}", api_secret())
    kind, subject = await _owner(resources, place, wanted.owner, minted.id)
    key = ApiKey(
        id=minted.id,
        space_id=place.id,
        name=wanted.name,
        secret_digest=api_secret_digest(minted.secret),
        scopes=scopes,
        agent=wanted.agent,
        vendor=wanted.vendor,
        owner_subject=subject,
        owner_kind=kind,
        admin=wanted.admin,
        allow_impersonation=wanted.allow_impersonation,
    )
    who = await actor(resources, place)
    async with resources.database.begin(place.id) as tx:
        connection = await driver(tx)
        await api_key.mint(connection, key)
        await receipts.write(connection, Receipt(place.id, who, "key.minted", {"key": key.id, "scopes": scopes}))
    return minted


def show(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Lists the keys of a space."""

    async def listed(resources: Resources) -> list[dict[str, object]]:
        place = await spaces.find(resources.database, space)
        return [_document(key) for key in await api_key.listed(resources.database.pool, place.id)]

    keys = with_stores(data_dir, listed)
    answer(keys, table([_row(key) for key in keys], _TITLES), as_json=as_json)


def revoke(space: str, key_id: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Ends a key; Failed when the space has no such living key."""

    async def revoked(resources: Resources) -> bool:
        place = await spaces.find(resources.database, space)
        who = await actor(resources, place)
        async with resources.database.begin(place.id) as tx:
            connection = await driver(tx)
            ended = await api_key.revoke(connection, place.id, key_id)
            if ended:
                await receipts.write(connection, Receipt(place.id, who, "key.revoked", {"key": key_id}))
        return ended

    if not with_stores(data_dir, revoked):
        raise Failed(
            f"the space {space} has no living key of that id: `afterturn keys list --space {space}` shows them"
        )
    answer({"id": key_id, "revoked": True}, [f"{key_id} is revoked."], as_json=as_json)


async def _owner(resources: Resources, place: Place, person: str | None, key_id: str) -> tuple[str, UUID]:
    handle = (HandleKind.KEY, key_id) if person is None else (HandleKind.OWNER, checked(person, "--owner"))
    people = People(resources.database, resources.keys)
    subject = await people.subject(place.id, place.lookup_key, handle, make=True)
    if subject is None:
        raise Failed("the owner was erased while the key was made: try again")
    return handle[0], subject


def _document(key: Mapping[str, Any]) -> dict[str, object]:
    told = {name: value for name, value in key.items() if name != "owner_subject"}
    return told | {"owner": opaque(key["owner_subject"])}


def _row(key: Mapping[str, Any]) -> tuple[object, ...]:
    """`OWNER` as the answer to a write names it; a key that owns its memory itself has no other."""
    owner = None if key["owner_kind"] == HandleKind.KEY else key["owner"]
    rights = [word for word in ("admin", "allow_impersonation") if key[word]]
    who = (key["id"], key["name"] or None, ",".join(key["scopes"]), key["agent"], key["vendor"], owner)
    return (*who, ",".join(rights) or None, key["created_at"], key["revoked_at"])
