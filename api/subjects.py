"""/v1/subjects: which handles are one person, and what that person is called."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import asyncpg
from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from api import problems
from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.shapes import AnyId, AnyText, Ask
from gateways.key_store import KeyGone
from intake.accept import SubjectErased
from models import link as links
from models import name as names
from models import receipt as receipts
from models import subject as subjects
from models.api_key import Credential, Scope
from models.columns import utc_now
from models.database import Connection, driver
from models.name import SEALED_NAME, Named
from models.receipt import Receipt
from models.subject import HandleKind, opaque
from privacy.gram import Form

router = APIRouter(prefix="/v1/subjects", route_class=Door, strict_content_type=False)

_KINDS = "|".join(kind.value for kind in HandleKind if kind is not HandleKind.KEY)
_LONGEST_NAME = 200  # characters
_MOST_NAMES = 200  # of one subject: each turn of theirs is searched for all

Kind = Annotated[str, StringConstraints(pattern=f"^({_KINDS})$")]


class Linked(Ask):
    """One handle. What is not confirmed is noted, and followed by nothing."""

    handle_kind: Kind
    handle: AnyId
    confirmed: bool = True


def _with_words(name: str) -> str:
    if len(name) > _LONGEST_NAME or not Form.of(name).words:
        raise ValueError(f"takes a name of at most {_LONGEST_NAME} characters, with letters in it")
    return name


# As near as a schema can say it.
_SAID = Field(json_schema_extra={"pattern": r"[^\W_]", "maxLength": _LONGEST_NAME})
PersonName = Annotated[AnyText, AfterValidator(_with_words), _SAID]


class SubjectAsk(Ask):
    """One person. The first handle that is confirmed, else the first, is whose names these are, and linked with the others."""

    handles: Annotated[list[Linked], Field(min_length=1, max_length=50)]
    names: Annotated[list[PersonName], Field(max_length=50)] = Field(
        default=[], description="What the person is called, besides what is known already."
    )


class SubjectLinked(BaseModel):
    """`profile_id` is the first's; `confirmed` how many subjects are this person now, `unconfirmed` how many may be.

    `names` is how many names the first has.
    """

    profile_id: str
    confirmed: int
    unconfirmed: int
    names: int


@router.put("", **opens(Scope.PROFILES_WRITE, 404, 409, of_a_person=False))
async def link_subject(ask: SubjectAsk, desk: AtDesk, caller: Calling) -> SubjectLinked:
    """Links handles, known or new, and adds names. Logs stay apart; masking, export and erasure follow what is confirmed."""
    arrived = utc_now()
    named = sorted(ask.handles, key=lambda one: not one.confirmed)  # stable: the first confirmed one leads
    for _ in range(3):  # what this process knows of a handle may be of before an erasure
        people = [await _subject(desk, caller.credential, one) for one in named]
        if await desk.people.is_from_before(caller.credential.space, arrived, *people):
            raise SubjectErased
        try:
            told = await _names(desk, caller.credential, people[0], ask.names)
            linked = await _link(desk, caller.credential, people, [one.confirmed for one in named], told)
        except (asyncpg.ForeignKeyViolationError, KeyGone):
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


async def _names(desk: Desk, credential: Credential, subject: UUID, said: Sequence[str]) -> list[Named]:
    """The names as they are kept: sealed under the person's key, hashed under the space's."""
    if not said:
        return []
    lookup, key = await desk.resources.keys.key(credential.lookup_key), await desk.resources.keys.key(subject)
    forms = {form.whole: (form, name) for name in said for form in (Form.of(name),)}
    return [
        Named(
            lookup.digest(form.whole, SEALED_NAME),
            lookup.digest(form.head, SEALED_NAME),
            form.words,
            key.seal(name, SEALED_NAME),
        )
        for form, name in forms.values()
    ]


async def _link(
    desk: Desk, credential: Credential, people: Sequence[UUID], confirmed: Sequence[bool], told: Sequence[Named]
) -> SubjectLinked | None:
    space, first = credential.space, people[0]
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        for other, sure in sorted(zip(people[1:], confirmed[1:], strict=True)):  # in one order: two may link at once
            await links.link(connection, space, first, other, confirmed=sure and confirmed[0])
        person = await subjects.closure(connection, space, first)
        if not person:
            return None
        await names.touch(connection, space, person)  # of two that register at once, one waits here
        await names.register(connection, space, first, told)
        linked = await _told(connection, space, first, person)
        ids = {"subjects": [opaque(one) for one in dict.fromkeys(people)]}
        counts = {"names": len(told)} if told else {}
        await receipts.write(connection, Receipt(space, credential.key_id, "subject.linked", ids, counts))
    desk.intake.called.forget(person)
    return linked


async def _told(connection: Connection, space: int, first: UUID, person: Sequence[UUID]) -> SubjectLinked:
    known = await names.count(connection, space, first)
    if known > _MOST_NAMES:
        raise problems.invalid(("names", f"a person has at most {_MOST_NAMES}"))
    unconfirmed = await links.unconfirmed(connection, space, person)
    return SubjectLinked(profile_id=opaque(first), confirmed=len(person), unconfirmed=unconfirmed, names=known)
