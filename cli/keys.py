"""`afterturn keys`: minting, listing and revoking API keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, remark, table
from cli.owner import check_agent, checked
from cli.reach import with_stores
from cli.spaces import Place
from intake import keys as minting
from intake.identity import People
from intake.keys import Minted, Minter, OtherVendor, OwnerErased, ReviewsItself
from jobs.resources import Resources
from models import api_key
from models.api_key import Scope
from models.subject import HandleKind, opaque

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

    def checked(self) -> minting.Wanted:
        """As it is minted; WrongUse for what no key may be."""
        owner = None if self.owner is None else checked(self.owner, "--owner")
        rights = (self.admin, self.allow_impersonation)
        try:
            return minting.Wanted(self.name, self._scopes(), self.agent, self.vendor, owner, *rights)
        except ReviewsItself:
            raise WrongUse(f"--scopes takes no {Scope.AGENT_MEMORY_REVIEW} beside --agent") from None

    def _scopes(self) -> tuple[Scope, ...]:
        """The scopes, each once; WrongUse names what is known when one is not."""
        scopes = list(dict.fromkeys(part.strip() for part in self.scopes.split(",") if part.strip()))
        unknown = [scope for scope in scopes if scope not in set(Scope)]
        if unknown or not scopes:
            told = f"no scope is called {', '.join(map(repr, unknown))}" if unknown else "--scopes names none"
            raise WrongUse(f"{told}; the scopes are {', '.join(Scope)}")
        return tuple(map(Scope, scopes))


def create(wanted: Wanted, data_dir: Path | None, *, as_json: bool) -> None:
    """Mints the key and prints its secret, once."""
    wanted.checked()
    minted = with_stores(data_dir, lambda resources: mint(resources, wanted))
    if wanted.allow_impersonation and not wanted.admin:
        remark("Its owner is no admin, so identity headers on its requests will be ignored: --admin makes them count.")
    lines = [f"id      {minted.id}", f"secret  {minted.secret}"]
    answer({"id": minted.id, "secret": minted.secret}, lines, as_json=as_json)
    if not as_json:
        remark("The secret is shown this once. Requests carry it as  Authorization: Bearer <secret>")


async def mint(resources: Resources, wanted: Wanted) -> Minted:
    """Stores a new key, and its space and owner where they are new."""
    asked = wanted.checked()
    place = await spaces.find_or_make(resources.database, resources.keys, wanted.space)
    people = People(resources.database, resources.keys)
    try:
        return await minting.mint(resources.database, people, await _minter(resources, place), asked)
    except OwnerErased:
        raise Failed("the owner was erased while the key was made: try again") from None
    except OtherVendor:
        raise Failed(f"the agent {asked.agent} is registered for another vendor than {asked.vendor}") from None


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
        return await minting.revoke(resources.database, await _minter(resources, place), key_id)

    if not with_stores(data_dir, revoked):
        raise Failed(
            f"the space {space} has no living key of that id: `afterturn keys list --space {space}` shows them"
        )
    answer({"id": key_id, "revoked": True}, [f"{key_id} is revoked."], as_json=as_json)


async def _minter(resources: Resources, place: Place) -> Minter:
    return Minter(await actor(resources, place), place.id, place.lookup_key)


def _document(key: Mapping[str, Any]) -> dict[str, object]:
    told = {name: value for name, value in key.items() if name != "owner_subject"}
    return told | {"owner": opaque(key["owner_subject"])}


def _row(key: Mapping[str, Any]) -> tuple[object, ...]:
    """`OWNER` as the answer to a write names it; a key that owns its memory itself has no other."""
    owner = None if key["owner_kind"] == HandleKind.KEY else key["owner"]
    rights = [word for word in ("admin", "allow_impersonation") if key[word]]
    who = (key["id"], key["name"] or None, ",".join(key["scopes"]), key["agent"], key["vendor"], owner)
    return (*who, ",".join(rights) or None, key["created_at"], key["revoked_at"])
