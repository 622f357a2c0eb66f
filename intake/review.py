"""Deciding about proposals: by a person who is not the one who proposed, once, and looked through again."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from intake import notes as writing
from intake.notes import Stands
from intake.refusal import examine
from jobs.resources import Resources
from memory.note import Draft
from models import allowance, note_book
from models import note as notes
from models import proposal as proposals
from models import receipt as receipts
from models.allowance import Allotted
from models.announcement import Event, announce
from models.database import Connection, driver
from models.note import Reader, Written
from models.proposal import Waiting
from models.receipt import Receipt

_OPEN = ("pending", "quarantined")


class Reason(StrEnum):
    """Why a proposal is rejected."""

    INCORRECT = "incorrect"
    DUPLICATE = "duplicate"
    NOT_REUSABLE = "not_reusable"
    OUTDATED = "outdated"
    PERSONAL_DATA = "personal_data"
    OTHER = "other"


class NoSuchProposal(Exception):
    """The space has no such proposal."""


class Decided(Exception):
    """It is not open to this decision: somebody decided it, nobody did in time, or its text has to change first."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class OwnProposal(Exception):
    """Who proposed does not approve."""


class LayerDown(Exception):
    """Not everything that looks for personal data answers; nothing is approved meanwhile."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Who decides: `actor` as receipts tell it, `principal` as `intake.notes.Author` has it."""

    space: int
    actor: str
    principal: bytes


async def approve(resources: Resources, who: Reviewer, proposal: UUID, edits: dict[str, Any]) -> Written:
    """The proposal is a note, or a note's new version; with `edits` of its members.

    NoSuchProposal, Decided, OwnProposal, LayerDown; and as writing a note: PersonalData, Duplicate, Exceeded, Stands.
    """
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, who.space)
        draft = replace(
            _open(await proposals.find(connection, who.space, proposal), who, edits).proposed.draft, **edits
        )
    if not await examine(resources, who.space, who.actor, draft.texts):
        raise LayerDown
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        waiting = _open(await proposals.lock(connection, who.space, proposal), who, edits)
        note = await _enter(connection, who, waiting, draft)
        await proposals.decide(connection, who.space, waiting, "approved", who.actor)
        await _tell(connection, who, waiting, "approved", note.id)
        return note


async def reject(resources: Resources, who: Reviewer, proposal: UUID, reason: Reason) -> Waiting:
    """The proposal comes to nothing. Who proposed may take it back so. NoSuchProposal, Decided."""
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        waiting = _found(await proposals.lock(connection, who.space, proposal))
        if waiting.state not in _OPEN:
            raise Decided(waiting.state)
        await proposals.decide(connection, who.space, waiting, "rejected", who.actor, reason)
        await _tell(connection, who, waiting, "rejected")
        return _found(await proposals.find(connection, who.space, proposal))


def _found(waiting: Waiting | None) -> Waiting:
    if waiting is None:
        raise NoSuchProposal
    return waiting


def _open(found: Waiting | None, who: Reviewer, edits: dict[str, Any]) -> Waiting:
    """The proposal, where this reviewer may approve it now. What was quarantined comes in only in other words."""
    waiting = _found(found)
    if waiting.state not in _OPEN or (waiting.state == "quarantined" and not {"title", "body"} <= edits.keys()):
        raise Decided(waiting.state)
    if waiting.proposed.proposer == who.principal:
        raise OwnProposal
    return waiting


async def _enter(connection: Connection, who: Reviewer, waiting: Waiting, draft: Draft) -> Written:
    """As the agent would have written it, but for the hour's limit: it is a person who writes."""
    rules = await note_book.opened(connection, who.space)
    owner, proposed = Reader(who.space, waiting.agent, waiting.vendor), waiting.proposed
    await allowance.left(connection, who.space, waiting.agent, Allotted.WRITES, rules.per_hour)  # its writes wait
    if proposed.note is None:
        await writing.check_ceiling(connection, rules, owner)
        await writing.refuse_twin(connection, owner, draft)
        return await writing.create(connection, owner, draft, proposed.evidence, who.actor, str(proposed.origin))
    before = await notes.lock_own(connection, owner, proposed.note)
    if before is None:  # deleted since
        raise Decided("gone")
    if before.status != "active" or before.version != proposed.note_version:
        raise Stands(before)
    await writing.refuse_twin(connection, owner, draft, before.id)
    return await writing.revise(connection, who.space, before, draft, who.actor)


async def _tell(connection: Connection, who: Reviewer, waiting: Waiting, state: str, note: UUID | None = None) -> None:
    ids = {"proposal": proposals.opaque(waiting.id), "agent": waiting.agent}
    ids |= {} if note is None else {"note": notes.opaque(note)}
    await receipts.write(connection, Receipt(who.space, who.actor, f"proposal.{state}", ids))
    kind, origin = str(waiting.proposed.draft.kind), str(waiting.proposed.origin)
    said = {"proposal": ids["proposal"], "kind": kind, "origin": origin, "state": state}
    await announce(connection, who.space, Event.PROPOSAL_DECIDED, said)
