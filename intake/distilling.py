"""Learning from a conversation: somebody asks, and what a model makes of the turns is looked through, and proposed.

Nobody writes a note this way: a person decides about the proposal.
"""

from uuid import UUID

import structlog

from intake import notes as writing
from intake.notes import Author
from intake.refusal import look
from jobs.asking import Wait
from jobs.distil import Heard, OfNoUse, hear, learn
from jobs.letters import distil_letter
from jobs.resources import Resources, Workshop
from jobs.verdict import Done, Later, Nothing, Verdict
from memory.note import Draft
from models import distillation as distillations
from models import model_answer, note_book, work
from models import note as notes
from models import proposal as proposals
from models import receipt as receipts
from models.conversation import SEALED_ID
from models.database import Connection, driver
from models.distillation import Asked, Reason
from models.proposal import Origin, Proposed
from models.receipt import Receipt
from models.work import Added, Claim

_PURPOSES = {"conversation": SEALED_ID, "task": "task"}  # what their ids are hashed as when turns come in

_log = structlog.get_logger()


async def ask(resources: Resources, who: Author, lookup_key: UUID, source: tuple[str, str]) -> tuple[UUID, list[Added]]:
    """The request's id, and the work to ring for. `source` is `conversation` or `task`, and its id.

    The same agent's request for the same one again is the same request, unless nothing came of it. MemoryOff.
    """
    kind, named = source
    evidence = await writing.evidence(resources, lookup_key, kind, named)
    known_as = (await resources.keys.key(lookup_key)).digest(named, _PURPOSES[kind])
    async with resources.database.begin(who.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, who.space)
        asked, due = await distillations.ask(connection, who.reader, evidence, known_as, (who.principal, who.actor))
        ids = {"distillation": distillations.opaque(asked), "agent": who.reader.agent or ""}
        await receipts.write(connection, Receipt(who.space, who.actor, "distillation.requested", ids))
        if due:
            meant = await distillations.sources(connection, who.reader, evidence, known_as)
            await distillations.still_there(connection, who.space, meant, ())  # an erasure of one goes on behind this
            await distillations.read_from(connection, who.space, asked, meant, ())
        added = await work.add(connection, distil_letter(who.space, asked)) if due else None
    return asked, [added] if added else []


async def distil(claim: Claim, workshop: Workshop) -> Verdict:
    """One request: read, think, look it through, propose."""
    try:
        heard = await hear(claim, workshop)
        if heard is None:
            return Nothing()
        draft = None if isinstance(heard, Reason) else await learn(claim, heard, workshop)
        reason = heard if isinstance(heard, Reason) else await _fault(claim, draft, workshop)
    except Wait as wait:
        return Later(wait.seconds, wait.why, counts=False)
    except OfNoUse as none:
        return Later(None, str(none))
    await _write(claim, None if isinstance(heard, Reason) else heard, draft, reason, workshop)
    return Done()


async def _fault(claim: Claim, draft: Draft | None, workshop: Workshop) -> Reason | None:
    """Why a draft comes to nothing. Waits while not every layer that looks for personal data answers."""
    if draft is None:
        return Reason.NO_REUSABLE_PROCEDURE
    found = await look(_resources(workshop), claim.space_id, draft.texts)
    if found.kinds:
        _log.info("distilled_note_discarded", space=claim.space_id, kinds=found.kinds)
        return Reason.PERSONAL_DATA
    if not found.complete:
        raise Wait("analyzer_away")
    return None


def _resources(workshop: Workshop) -> Resources:
    stores = (workshop.settings, workshop.database, workshop.keys, workshop.bell, workshop.packages)
    return Resources(*stores, workshop.analyzer)


async def _write(
    claim: Claim, heard: Heard | None, draft: Draft | None, reason: Reason | None, workshop: Workshop
) -> None:
    """The proposal, or why there is none, in one commit; nothing where whoever was read is erased meanwhile."""
    space = claim.space_id
    async with workshop.database.begin(space) as tx:
        connection = await driver(tx)
        await work.complete(connection, claim)
        if heard is not None:
            await model_answer.forget(tx, space, heard.subject)
            if not await distillations.still_there(connection, space, heard.asked.conversations, heard.asked.logs):
                return  # the request goes with them
        asked = await distillations.lock(connection, space, UUID(claim.payload["distillation"]))
        if asked is None or asked.state != "waiting":
            return
        proposal = None
        if draft is not None and reason is None:
            proposal = await _propose(connection, asked, draft)
            reason = Reason.NO_REUSABLE_PROCEDURE if proposal is None else None
        await distillations.finish(connection, space, asked.id, proposal, reason)
        ids = {"distillation": distillations.opaque(asked.id), "agent": asked.whose.agent or ""}
        ids |= {"reason": str(reason)} if proposal is None else {"proposal": proposals.opaque(proposal)}
        await receipts.write(connection, Receipt(space, f"job:{claim.kind}", "distillation.finished", ids))


async def _propose(connection: Connection, asked: Asked, draft: Draft) -> UUID | None:
    """The proposal's id; None where an active note of the agent's says the same, so that there is nothing to reuse anew."""
    if await notes.twin(connection, asked.whose, draft) is not None:
        return None
    who = Author(asked.whose.space, asked.actor, asked.proposer, asked.whose)
    first = asked.conversations[0] if asked.conversations else None
    proposed = Proposed(Origin.DISTILLED, draft, asked.proposer, asked.actor, asked.evidence, conversation=first)
    return (await writing.propose(connection, who, proposed)).proposal
