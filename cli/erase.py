"""`afterturn erase`: a person, one of their conversations, or an agent, erased with proof."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, remark
from cli.owner import named
from cli.reach import with_stores
from cli.spaces import Place
from intake import erasure as erasing
from intake.erasure import REASONS, Wish
from intake.identity import People
from jobs.resources import Resources
from models import conversation as conversations
from models import erasing as erasures
from models.accepting import Held, NothingThere
from models.conversation import SEALED_ID
from models.database import driver
from models.erasing import SET_ASIDE, Erasing
from models.subject import HandleKind

_EVERY = 0.5  # seconds between looks


@dataclass(frozen=True, slots=True)
class Wanted:
    """As the command line says it: `person` as KIND:HANDLE, with `conversation` one of theirs, or `agent` alone."""

    space: str
    reason: str
    person: str | None
    conversation: str | None
    agent: str | None
    wait: bool

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise WrongUse(f"--reason takes {', '.join(REASONS)}")
        if (self.person is None) == (self.agent is None) or (self.conversation and self.person is None):
            raise WrongUse("erase takes --subject, --subject with --conversation, or --agent")
        if self.person is not None:
            self.handle()

    def handle(self) -> tuple[HandleKind, str]:
        """The person's handle; WrongUse when it cannot name anybody."""
        return named(self.person or "", "--subject")


def run(wanted: Wanted, data_dir: Path | None, *, as_json: bool) -> None:
    """Accepts the erasure, and with `wait` sees it completed. Failed where there is nothing to erase."""
    done = with_stores(data_dir, lambda resources: _erase(resources, wanted))
    lines = [f"id     {done.id}", f"state  {done.state}", *(f"{name:16} {rows}" for name, rows in done.counts.items())]
    answer({"id": done.id, "state": done.state, "counts": dict(done.counts)}, lines, as_json=as_json)


async def _erase(resources: Resources, wanted: Wanted) -> Erasing:
    place = await spaces.find(resources.database, wanted.space)
    try:
        erasure, added = await erasing.accept(resources, await _wish(resources, place, wanted))
    except NothingThere:
        raise Failed(f"the space {wanted.space} has nothing of that name") from None
    except Held:
        raise Failed("a hold forbids to delete anything of this: `afterturn hold lift` ends it") from None
    await resources.bell.ring(added)
    done = await _read(resources, place.id, erasure)
    while wanted.wait and done.state != "completed":
        await asyncio.sleep(_EVERY)
        before, done = done, await _read(resources, place.id, erasure)
        if (before.state, before.counts) != (done.state, done.counts):
            deleted = sum(rows for name, rows in done.counts.items() if not name.endswith(SET_ASIDE))
            remark(f"{done.state}: {deleted} rows deleted")
    return done


async def _wish(resources: Resources, place: Place, wanted: Wanted) -> Wish:
    who = (place.id, wanted.reason, await actor(resources, place))
    if wanted.agent is not None:
        return Wish(*who, agent=wanted.agent)
    people = People(resources.database, resources.keys)
    subject = await people.subject(place.id, place.lookup_key, wanted.handle(), make=False)
    if subject is None:
        raise NothingThere
    if wanted.conversation is None:
        return Wish(*who, subject=subject)
    return Wish(*who, conversation=await _conversation(resources, place, subject, wanted.conversation))


async def _conversation(resources: Resources, place: Place, subject: UUID, conversation_id: str) -> int:
    key = await resources.keys.key(subject)
    async with resources.database.begin(place.id) as tx:
        digest = key.digest(conversation_id, SEALED_ID)
        found = await conversations.number(await driver(tx), place.id, subject, digest)
    if found is None:
        raise NothingThere
    return found


async def _read(resources: Resources, space: int, erasure: UUID) -> Erasing:
    async with resources.database.begin(space) as tx:
        found = await erasures.find(await driver(tx), space, erasure)
    if found is None:
        raise Failed(f"the erasure {erasure} is not in the data: is this a restored backup?")
    return found
