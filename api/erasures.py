"""/v1/erasures: one person, one conversation or one agent erased, and how far that is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from api import problems
from api.desk import AtDesk, Calling, Desk
from api.document import Header, opens
from api.door import Door
from api.shapes import AnyId, Ask, one_of
from intake import erasure as erasing
from intake.erasure import Wish
from models import conversation as conversations
from models import erasing as erasures
from models.accepting import NothingThere
from models.api_key import Credential, Scope
from models.conversation import SEALED_ID
from models.database import driver
from models.erasing import Erasing
from models.subject import HandleKind

router = APIRouter(prefix="/v1/erasures", route_class=Door, strict_content_type=False)

_Id = Annotated[UUID, Path()]
_IDEMPOTENCY = Header("Idempotency-Key", 255, "The same request again, with the same key, is the same erasure.")
State = Literal["accepted", "running", "verifying", "completed", "incomplete"]
Reason = Literal["subject_request", "consent_withdrawn", "account_closed", "contract_end", "error", "other"]


class Named(Ask):
    """A person, by one of their handles."""

    handle_kind: Annotated[HandleKind, Field(strict=False)]
    handle: AnyId


class Talk(Ask):
    """A conversation, by whose it is and the id that the chat gave it."""

    subject: Named
    conversation_id: AnyId


class ErasureAsk(Ask):
    """One of `subject`, `conversation` and `agent`."""

    subject: Named | None = None
    conversation: Talk | None = None
    agent: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")] | None = None
    reason_code: Reason

    model_config = ConfigDict(json_schema_extra=one_of("subject", "conversation", "agent"))

    @model_validator(mode="after")
    def _one(self) -> "ErasureAsk":
        if sum(named is not None for named in (self.subject, self.conversation, self.agent)) != 1:
            raise ValueError("takes one of subject, conversation and agent")
        return self


class Accepted(BaseModel):
    """It is accepted: nothing of it can be read any more, and the rows go one batch after another."""

    id: UUID
    state: State = "accepted"


class Erasure(BaseModel):
    """`counts` are rows deleted so far, by data set; `notes_set_aside` and `proposals_set_aside` wait for a reviewer.

    `unconfirmed` links were not followed.
    """

    id: UUID
    kind: Literal["subject", "conversation", "agent"]
    state: State
    reason_code: Reason
    progress: dict[str, Any]
    counts: dict[str, int]
    unconfirmed: int
    accepted_at: datetime
    finished_at: datetime | None = None


@router.post("", status_code=202, **opens(Scope.OPERATOR, 404, 409, of_a_person=False, headers=[_IDEMPOTENCY]))
async def ask_for_erasure(ask: ErasureAsk, request: Request, desk: AtDesk, caller: Calling) -> Accepted:
    """Erases it for good. It cannot be taken back."""
    credential = caller.credential
    named = await _named(desk, credential, ask, request.headers.get(_IDEMPOTENCY.name))
    if (known := await _known(desk, credential, named)) is not None:
        return known
    wish = await _wish(desk, credential, ask)
    if wish is None:
        raise problems.not_found()
    try:
        erasure, added = await erasing.accept(desk.resources, wish, named)
    except NothingThere:  # the same request may have been first
        if (known := await _known(desk, credential, named)) is not None:
            return known
        raise
    desk.people.forget(wish.subject)
    desk.ring(added)
    return Accepted(id=erasure)


@router.get(
    "/{erasure}", response_model_exclude_none=True, **opens(Scope.OPERATOR, 404, 422, body=False, of_a_person=False)
)
async def read_erasure(erasure: _Id, desk: AtDesk, caller: Calling) -> Erasure:
    """How far an erasure is."""
    found = await _read(desk, caller.credential.space, erasure)
    if found is None:
        raise problems.not_found()
    said: Mapping[str, Any] = {name: getattr(found, name) for name in Erasure.model_fields}
    return Erasure(**said)


async def _named(desk: Desk, credential: Credential, ask: ErasureAsk, key: str | None) -> UUID | None:
    """The id that an erasure has by its idempotency key: the request again finds it, whoever it was is gone by then."""
    if key is None:
        return None
    if not 0 < len(key) <= _IDEMPOTENCY.longest:
        raise problems.invalid((f"header.{_IDEMPOTENCY.name}", f"takes 1 to {_IDEMPOTENCY.longest} characters"))
    space_key = await desk.resources.keys.key(credential.lookup_key)
    digest = space_key.digest(f"{credential.key_id}\0{key}\0{ask.model_dump_json()}", "idempotency/erasures")
    return UUID(bytes=digest)


async def _known(desk: Desk, credential: Credential, named: UUID | None) -> Accepted | None:
    found = None if named is None else await _read(desk, credential.space, named)
    return None if found is None else Accepted.model_validate({"id": found.id, "state": found.state})


async def _read(desk: Desk, space: int, erasure: UUID) -> Erasing | None:
    async with desk.resources.database.begin(space) as tx:
        return await erasures.find(await driver(tx), space, erasure)


async def _wish(desk: Desk, credential: Credential, ask: ErasureAsk) -> Wish | None:
    """What is to be erased, by ids; None where there is no such thing."""
    who = (credential.space, ask.reason_code, credential.key_id)
    if ask.agent is not None:
        return Wish(*who, agent=ask.agent) if credential.agent in (None, ask.agent) else None
    named = ask.subject or (ask.conversation.subject if ask.conversation else None)
    subject = None if named is None else await _subject(desk, credential, named)
    if subject is None:
        return None
    if ask.conversation is None:
        return Wish(*who, subject=subject)
    key = await desk.resources.keys.key(subject)
    digest = key.digest(ask.conversation.conversation_id, SEALED_ID)
    async with desk.resources.database.begin(credential.space) as tx:
        found = await conversations.number(await driver(tx), credential.space, subject, digest)
    return None if found is None else Wish(*who, conversation=found)


async def _subject(desk: Desk, credential: Credential, named: Named) -> UUID | None:
    handle = (named.handle_kind, named.handle)
    found = await desk.people.subject(credential.space, credential.lookup_key, handle, make=False)
    desk.people.forget(found)  # what this process knows may be of before an earlier erasure: ask again
    return await desk.people.subject(credential.space, credential.lookup_key, handle, make=False)
