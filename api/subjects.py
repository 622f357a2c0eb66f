"""/v1/subjects: which handles are one person."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import asyncpg
from fastapi import APIRouter
from pydantic import BaseModel, Field, StringConstraints

from api import problems
from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.shapes import AnyId, Ask
from models import link as links
from models import receipt as receipts
from models import subject as subjects
from models.api_key import Credential, Scope
from models.database import Connection, driver
from models.receipt import Receipt
from models.subject import HandleKind, opaque

router = APIRouter(prefix="/v1/subjects", route_class=Door, strict_content_type=False)

_KINDS = "|".join(kind.value for kind in HandleKind if kind is not HandleKind.KEY)
Kind = Annotated[str, StringConstraints(pattern=f"^({_KINDS})$")]


class Linked(Ask):
    """One handle. What is not confirmed is noted, and followed by nothing."""

    handle_kind: Kind
    handle: AnyId
    confirmed: bool = True


class SubjectAsk(Ask):
    """Handles of one person. The first that is confirmed, else the first, is what the others are linked with."""

    handles: Annotated[list[Linked], Field(min_length=1, max_length=50)]


class SubjectLinked(BaseModel):
    """`profile_id` is the first's; `confirmed` how many subjects are this person now, `unconfirmed` how many may be."""

    profile_id: str
    confirmed: int
    unconfirmed: int


@router.put("", **opens(Scope.PROFILES_WRITE, 404, of_a_person=False))
async def link_subject(ask: SubjectAsk, desk: AtDesk, caller: Calling) -> SubjectLinked:
    """Links handles, known or new. Logs stay apart; export, erasure and the profile follow what is confirmed."""
    named = sorted(ask.handles, key=lambda one: not one.confirmed)  # stable: the first confirmed one leads
    for _ in range(3):  # what this process knows of a handle may be of before an erasure
        people = [await _subject(desk, caller.credential, one) for one in named]
        try:
            linked = await _link(desk, caller.credential, people, [one.confirmed for one in named])
        except asyncpg.ForeignKeyViolationError:
            linked = None
        if linked is not None:
            return linked
        desk.people.forget(*people)
    raise problems.not_found()


async def _subject(desk: Desk, credential: Credential, named: Linked) -> UUID:
    handle = (HandleKind(named.handle_kind), named.handle)
    subject = await desk.people.subject(credential.space, credential.lookup_key, handle, make=True)
    if subject is None:
        raise problems.not_found()
    return subject


async def _link(
    desk: Desk, credential: Credential, people: Sequence[UUID], confirmed: Sequence[bool]
) -> SubjectLinked | None:
    space, first = credential.space, people[0]
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        for other, sure in sorted(zip(people[1:], confirmed[1:], strict=True)):  # in one order: two may link at once
            await links.link(connection, space, first, other, confirmed=sure and confirmed[0])
        person = await subjects.closure(connection, space, first)
        if not person:
            return None
        ids = {"subjects": [opaque(one) for one in dict.fromkeys(people)]}
        await receipts.write(connection, Receipt(space, credential.key_id, "subject.linked", ids))
        return await _told(connection, space, first, person)


async def _told(connection: Connection, space: int, first: UUID, person: Sequence[UUID]) -> SubjectLinked:
    unconfirmed = await links.unconfirmed(connection, space, person)
    return SubjectLinked(profile_id=opaque(first), confirmed=len(person), unconfirmed=unconfirmed)
