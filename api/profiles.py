"""/v1/profiles: what is kept about a person, in numbers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import AnyId, Ask
from models import subject as subjects
from models.api_key import Scope
from models.database import driver
from models.profile import profile
from models.subject import HandleKind, opaque

router = APIRouter(prefix="/v1/profiles", route_class=Door, strict_content_type=False)

_Id = Annotated[str, Path(pattern="^sub_[0-9a-f]{32}$", description="The subject's opaque id: sub_…")]


class LookupAsk(Ask):
    """A person, by one of their handles."""

    handle_kind: Annotated[HandleKind, Field(strict=False)]
    handle: AnyId


class Found(BaseModel):
    """The subject's opaque id."""

    profile_id: str


class ProfileOf(BaseModel):
    """`subjects` are one person by confirmed links; `counts` are rows by data set that are not past their term."""

    profile_id: str
    subjects: list[str]
    unconfirmed: int
    counts: dict[str, int]
    known_since: datetime
    last_turn_at: datetime | None


@router.post("/lookup", **opens(Scope.PROFILES_READ, 404, of_a_person=False))
async def look_up_profile(ask: LookupAsk, desk: AtDesk, caller: Calling) -> Found:
    """The id of whoever has the handle."""
    credential, handle = caller.credential, (ask.handle_kind, ask.handle)
    for _ in range(2):  # what this process knows of the handle may be of before an erasure
        subject = await desk.people.subject(credential.space, credential.lookup_key, handle, make=False)
        if subject is None:
            break
        async with desk.resources.database.begin(credential.space) as tx:
            if await subjects.closure(await driver(tx), credential.space, subject):
                return Found(profile_id=opaque(subject))
        desk.people.forget(subject)
    raise problems.not_found()


@router.get("/{profile_id}", **opens(Scope.PROFILES_READ, 404, 422, body=False, of_a_person=False))
async def read_profile(profile_id: _Id, desk: AtDesk, caller: Calling) -> ProfileOf:
    """Counts and dates, never a text."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        people = await subjects.closure(connection, space, UUID(profile_id.removeprefix("sub_")))
        if not people:
            raise problems.not_found()
        kept = await profile(connection, space, people)
    return ProfileOf(
        profile_id=profile_id,
        subjects=[opaque(one) for one in kept.people],
        unconfirmed=kept.unconfirmed,
        counts=kept.counts,
        known_since=kept.known_since,
        last_turn_at=kept.last_turn_at,
    )
