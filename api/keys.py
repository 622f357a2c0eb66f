"""/v1/keys: minted, listed and revoked. A secret is shown once; a revoked key opens nothing a second later."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api import problems
from api.auth import Caller
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import AgentName, Ask
from intake import keys as minting
from intake.keys import Wanted
from models import api_key
from models.api_key import Scope
from models.database import driver
from models.subject import opaque

router = APIRouter(prefix="/v1/keys", route_class=Door, strict_content_type=False)

_PATTERN = "^key_[0-9a-f]{12,32}$"
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # would show a name as another
_BLANK = r" \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_Name = Annotated[str, StringConstraints(max_length=200, pattern=f"^[^{_UNSEEN}]*$")]
_Handle = Annotated[
    str,
    StringConstraints(max_length=512, pattern=f"^[^{_UNSEEN}{_BLANK}](?:[^{_UNSEEN}]*[^{_UNSEEN}{_BLANK}])?$"),
]
_Id = Annotated[str, Path(pattern=_PATTERN, description="As minting answered it: key_…")]

_REVIEWS_ITSELF: Any = {
    "required": ["agent"],
    "properties": {"agent": {"type": "string"}, "scopes": {"contains": {"const": str(Scope.AGENT_MEMORY_REVIEW)}}},
}


class KeyAsk(Ask):
    """What the key is to be. Without `owner` its memory is its own; `agent` is the only one that it may name."""

    name: _Name = ""
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(min_length=1, max_length=32)
    agent: AgentName | None = None
    vendor: AgentName | None = None
    owner: _Handle | None = None
    admin: bool = Field(default=False, description="Its owner is an admin. Only an admin's key mints such a one.")
    allow_impersonation: bool = Field(default=False, description="Identity headers count, where `admin` is set too.")

    model_config = ConfigDict(json_schema_extra={"not": _REVIEWS_ITSELF})


class Minted(BaseModel):
    """`secret` is shown this once."""

    id: str
    secret: str


class Key(BaseModel):
    """`owner` is whose memory it writes, as an opaque id: its own, where `owner_kind` is `key`."""

    id: str
    name: str
    scopes: list[str]
    agent: str | None
    vendor: str | None
    owner: str
    owner_kind: str
    admin: bool
    allow_impersonation: bool
    created_at: datetime
    revoked_at: datetime | None


class KeyPage(BaseModel):
    """Oldest first, revoked ones included. `next` is the `after` of the next page, null on the last one."""

    keys: list[Key]
    next: str | None


@router.post("", status_code=201, **opens(Scope.SECURITY, 404, 409, of_a_person=False))
async def mint_key(ask: KeyAsk, response: Response, desk: AtDesk, caller: Calling) -> Minted:
    """A new key in the caller's own space."""
    _check(caller)
    database, minter = desk.resources.database, minting.by_key(caller.credential)
    minted = await minting.mint(database, desk.people, minter, _wanted(ask))
    response.headers["Cache-Control"] = "no-store"
    return Minted(id=minted.id, secret=minted.secret)


@router.get("", **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def list_keys(
    desk: AtDesk,
    caller: Calling,
    after: Annotated[str | None, Query(pattern=_PATTERN)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> KeyPage:
    """The keys of the caller's space, without their secrets."""
    _check(caller)
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        rows = await api_key.page(await driver(tx), space, after, limit + 1)
    if rows is None:
        raise problems.not_found()
    page = [_shown(row) for row in rows[:limit]]
    return KeyPage(keys=page, next=page[-1].id if len(rows) > limit else None)


@router.delete("/{key_id}", status_code=204, **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def revoke_key(key_id: _Id, desk: AtDesk, caller: Calling) -> Response:
    """Ends a key, the caller's own as well. It stays listed as revoked, for receipts name it."""
    _check(caller)
    if not await minting.revoke(desk.resources.database, minting.by_key(caller.credential), key_id):
        raise problems.not_found()
    return Response(status_code=204)


def _check(caller: Caller) -> None:
    """Keys are the whole space's: a key of one agent is not for them."""
    if caller.credential.agent is not None:
        raise problems.not_found()


def _wanted(ask: KeyAsk) -> Wanted:
    scopes = tuple(dict.fromkeys(ask.scopes))
    return Wanted(ask.name, scopes, ask.agent, ask.vendor, ask.owner, ask.admin, ask.allow_impersonation)


def _shown(row: dict[str, Any]) -> Key:
    return Key(
        **{name: said for name, said in row.items() if name != "owner_subject"}, owner=opaque(row["owner_subject"])
    )
