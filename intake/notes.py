"""Writing to agent memory: looked through, within its limits, and a proposal where an agent alone may not write."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from intake.refusal import Exceeded, examine
from jobs.resources import Resources
from memory.note import Draft, Visibility, alike
from models import agent as agents
from models import allowance, note_book, note_quarantine, note_search
from models import note as notes
from models import proposal as proposals
from models import receipt as receipts
from models.allowance import Allotted
from models.announcement import Event, announce
from models.api_key import Credential
from models.database import Connection, driver
from models.note import Evidence, Reader, Written
from models.note_book import Rules
from models.proposal import Origin, Proposed
from models.receipt import Receipt

_LIKE_IT = 20  # active notes that share words with a new one, and are compared with it


class NoSuchNote(Exception):
    """There is no such note, or it is another's."""


class Duplicate(Exception):
    """An active note says the same."""

    def __init__(self, note: UUID) -> None:
        super().__init__(str(note))
        self.note = note


class Stands(Exception):
    """The note does not stand as the change takes it: its status and version are these."""

    def __init__(self, note: Written) -> None:
        super().__init__(note.status)
        self.status, self.version = note.status, note.version


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, for which agent: `actor` is the key's id, `principal` a keyed hash of its owner, else of itself."""

    space: int
    actor: str
    principal: bytes
    reader: Reader


@dataclass(frozen=True, slots=True)
class Kept:
    """It is a note now. `similar` are active ones that say nearly the same."""

    note: Written
    similar: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Put:
    """It waits for a person."""

    proposal: UUID


async def reader(resources: Resources, credential: Credential, agent: str | None) -> Reader:
    """Who reads by a key: the agent, of its vendor or else the key's; all of the space where `agent` is None."""
    if agent is None:
        return Reader(credential.space, None)
    async with resources.database.begin(credential.space) as tx:
        registered = await agents.find(await driver(tx), credential.space, agent)
    return Reader(credential.space, agent, credential.vendor if registered is None else registered.vendor)


async def author(resources: Resources, credential: Credential, reader: Reader) -> Author:
    """The author that a key speaks for."""
    return Author(credential.space, credential.key_id, await principal(resources, credential), reader)


async def principal(resources: Resources, credential: Credential) -> bytes:
    """Who is behind a key, as proposals keep it: its owner, else the key itself. It leads to nobody."""
    key = await resources.keys.key(credential.lookup_key)
    return key.digest(credential.key_id if credential.owner_kind == "key" else credential.owner.hex, "principal")


async def evidence(resources: Resources, lookup_key: UUID, kind: str, named: str) -> Evidence:
    """Where a note comes from, without the id: that may be a phone number."""
    key = await resources.keys.key(lookup_key)
    return Evidence(kind, key.digest(named, f"evidence/{kind}"))


async def write(resources: Resources, who: Author, draft: Draft, source: Evidence | None) -> Kept | Put:
    """A new note of an agent's. PersonalData, Duplicate, Exceeded: nothing is kept then."""
    complete = await examine(resources, who.space, who.actor, draft.texts)
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        rules = await note_book.opened(connection, who.space)
        await _count(connection, who, rules)
        await refuse_twin(connection, who.reader, draft)
        origin = _waits_for(rules, draft, complete=complete)
        if origin is not None:
            return await propose(connection, who, Proposed(origin, draft, who.principal, who.actor, source))
        await check_ceiling(connection, rules, who.reader)
        near = await similar(connection, who.reader, draft)
        return Kept(await create(connection, who.reader, draft, source, who.actor), near)


async def edit(
    resources: Resources, who: Author, note: UUID, changes: dict[str, Any], seen: int | None = None
) -> Kept | Put:
    """A new version of a note of the agent's own, with these members changed. Stands where it is not active, or not `seen`."""
    draft = await _changed(resources, who, note, changes)
    complete = await examine(resources, who.space, who.actor, draft.texts)
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        rules = await note_book.opened(connection, who.space)
        await _count(connection, who, rules)
        before = await notes.lock_own(connection, who.reader, note)
        if before is None:
            raise NoSuchNote
        if before.status != "active" or replace(before.draft, **changes) != draft or seen not in (None, before.version):
            raise Stands(before)
        await refuse_twin(connection, who.reader, draft, note)
        origin = _waits_for(rules, draft, complete=complete)
        if origin is not None:
            proposed = Proposed(origin, draft, who.principal, who.actor, None, note, before.version)
            return await propose(connection, who, proposed)
        near = await similar(connection, who.reader, draft, note)
        return Kept(await revise(connection, who.space, before, draft, who.actor), near)


async def retire(resources: Resources, who: Author, note: UUID) -> Written:
    """A note of the agent's own is not served any more. Again, it is what it is."""
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, who.space)
        before = await notes.lock_own(connection, who.reader, note)
        if before is None or before.status == "quarantined":
            raise NoSuchNote
        if before.status == "retired":
            return before
        retired = await notes.retire(connection, who.space, note)
        await _tell(connection, who.space, who.actor, "note.retired", retired)
        return retired


async def delete(resources: Resources, space: int, actor: str, note: UUID) -> None:
    """A note of whichever agent is gone in every version."""
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        gone = await notes.delete(connection, space, note)
        if not gone:
            raise NoSuchNote
        await note_book.turn(connection, space)
        receipt = Receipt(space, actor, "note.deleted", {"note": notes.opaque(note)}, {"versions": gone})
        await receipts.write(connection, receipt)


async def release(resources: Resources, space: int, actor: str, note: UUID) -> Written:
    """A note that was set aside is again what it was: a person has looked at it."""
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        if not await note_quarantine.release(connection, space, note):
            raise NoSuchNote
        released = await notes.again(connection, space, note)
        await _tell(connection, space, actor, "note.released", released)
        return released


async def _changed(resources: Resources, who: Author, note: UUID, changes: dict[str, Any]) -> Draft:
    """What the note would say: that is looked through before anything is locked."""
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, who.space)
        before = await notes.lock_own(connection, who.reader, note)
    if before is None or before.status == "quarantined":
        raise NoSuchNote
    return replace(before.draft, **changes)


async def _count(connection: Connection, who: Author, rules: Rules) -> None:
    """One of the agent's writes of this hour. Its other writes wait for this one, so that each limit is exact."""
    agent = who.reader.agent or ""
    wait = await allowance.spend(connection, who.space, agent, Allotted.WRITES, rules.per_hour)
    if wait is not None:
        raise Exceeded("notes_per_hour", rules.per_hour, wait)


async def refuse_twin(connection: Connection, reader: Reader, draft: Draft, besides: UUID | None = None) -> None:
    """Duplicate where an active note that the agent may read says the same."""
    twin = await notes.twin(connection, reader, draft, besides)
    if twin is not None:
        raise Duplicate(twin)


async def check_ceiling(connection: Connection, rules: Rules, owner: Reader) -> None:
    """Exceeded where the agent has as many active notes as the space takes. Its allowance is locked."""
    if await notes.active_of(connection, owner.space, owner.agent or "") >= rules.ceiling:
        raise Exceeded("note_ceiling", rules.ceiling)


def _waits_for(rules: Rules, draft: Draft, *, complete: bool) -> Origin | None:
    """Why a person has to look first, if one has."""
    if rules.human_only:
        return Origin.HUMAN_ONLY
    if draft.visibility == Visibility.SPACE:  # what a reviewer opened to all stays theirs to change
        return Origin.SPACE_VISIBILITY
    return None if complete else Origin.MODELS_LAYER_DOWN


async def similar(
    connection: Connection, reader: Reader, draft: Draft, besides: UUID | None = None
) -> tuple[UUID, ...]:
    """Active notes that the agent may read and that say nearly the same."""
    found = await note_search.sharing_words(connection, reader, draft, _LIKE_IT)
    others = {one.id: (one.draft.title, one.draft.body) for one in found if one.id != besides}
    return tuple(alike(draft, others))


async def propose(connection: Connection, who: Author, proposed: Proposed) -> Put:
    """It waits for a person; the same of the same agent waits once."""
    known = await proposals.same(connection, who.reader, proposed.draft, proposed.note)
    if known is not None:
        return Put(known)
    proposal = await proposals.add(connection, who.reader, proposed)
    ids = {"proposal": proposals.opaque(proposal), "agent": who.reader.agent or ""}
    if proposed.note is not None:
        ids["note"] = notes.opaque(proposed.note)
    await receipts.write(connection, Receipt(who.space, who.actor, "proposal.created", ids))
    said = {"kind": str(proposed.draft.kind), "origin": str(proposed.origin)}
    await announce(connection, who.space, Event.PROPOSAL_CREATED, {"proposal": ids["proposal"], **said})
    return Put(proposal)


async def create(
    connection: Connection, owner: Reader, draft: Draft, source: Evidence | None, actor: str, origin: str = "agent"
) -> Written:
    """The note, its receipt, and the news of it."""
    note = await notes.add(connection, owner, draft, source, actor)
    await _tell(connection, owner.space, actor, "note.created", note)
    said = {"note": notes.opaque(note.id), "kind": str(draft.kind), "origin": origin}
    await announce(connection, owner.space, Event.NOTE_CREATED, said)
    return note


async def revise(connection: Connection, space: int, before: Written, draft: Draft, actor: str) -> Written:
    """One version more, and its receipt."""
    note = await notes.revise(connection, space, before, draft, actor)
    await _tell(connection, space, actor, "note.edited", note)
    return note


async def _tell(connection: Connection, space: int, actor: str, action: str, note: Written) -> None:
    await note_book.turn(connection, space)
    ids = {"note": notes.opaque(note.id), "agent": note.agent}
    await receipts.write(connection, Receipt(space, actor, action, ids, {"version": note.version}))
