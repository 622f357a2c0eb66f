"""/v1/agent-memory/proposals: what waits for a person before it is a note, and what the person decides."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from api import note_shapes, problems
from api.auth import Caller
from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.note_shapes import Changes, EvidenceShown, Note, Said, evidence_shown, said, shown
from api.shapes import Ask
from intake import notes as writing
from intake import review
from intake.review import Reason, Reviewer
from models import note as notes
from models import proposal as proposals
from models.api_key import Scope
from models.database import driver
from models.note import Reader
from models.proposal import Origin, Waiting

router = APIRouter(prefix="/v1/agent-memory/proposals", route_class=Door, strict_content_type=False)

State = Literal["pending", "approved", "rejected", "expired", "quarantined"]
_PATTERN = "^prop_[0-9a-f]{32}$"
_Id = Annotated[str, Path(pattern=_PATTERN, description="As the list shows it: prop_…")]


class Proposal(Said):
    """`note` and `note_version` are of the note that it would change; `expires_at` counts while it is pending."""

    id: str
    state: State
    origin: Origin
    agent: str
    vendor: str | None = None
    evidence: EvidenceShown | None = None
    note: str | None = None
    note_version: int | None = None
    reason_code: str | None = None
    actor: str
    decided_by: str | None = None
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None


class ProposalPage(BaseModel):
    """Oldest first. `next` is the `after` of the next page, absent on the last one."""

    proposals: list[Proposal]
    next: str | None = None


class ProposalBeside(Proposal):
    """`before` is the note that it would change, as it stands; `similar` are active notes that say nearly the same."""

    before: Note | None = None
    similar: list[Note]


class ApproveAsk(Changes):
    """Edits, if any: they are looked through again."""


class RejectAsk(Ask):
    """Why."""

    reason_code: Annotated[Reason, Field(strict=False)]


class Approved(BaseModel):
    """The note that it is now."""

    id: str
    state: Literal["approved"] = "approved"
    note: Note


@router.get(
    "", response_model_exclude_none=True, **opens(Scope.AGENT_MEMORY_REVIEW, 404, 422, body=False, of_a_person=False)
)
async def list_proposals(
    desk: AtDesk,
    caller: Calling,
    state: State | None = None,
    after: Annotated[str | None, Query(pattern=_PATTERN)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ProposalPage:
    """The space's proposals, of one state or all."""
    note_shapes.check_reviewer(caller)
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        rows = await proposals.listed(await driver(tx), space, state, _id(after) if after else None, limit + 1)
    if rows is None:
        raise problems.not_found()
    page = [Proposal(**_shown(row)) for row in rows[:limit]]
    return ProposalPage(proposals=page, next=page[-1].id if len(rows) > limit else None)


@router.get(
    "/{proposal}",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_REVIEW, 404, 422, body=False, of_a_person=False),
)
async def read_proposal(proposal: _Id, desk: AtDesk, caller: Calling) -> ProposalBeside:
    """A proposal beside what there is already."""
    note_shapes.check_reviewer(caller)
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        found = await proposals.find(connection, space, _id(proposal))
        if found is None:
            raise problems.not_found()
        everybody, changes = Reader(space, None), found.proposed.note
        before = None if changes is None else await notes.find(connection, everybody, changes)
        near = await writing.similar(connection, everybody, found.proposed.draft, changes)
        alike = [await notes.find(connection, everybody, one) for one in near]
    return ProposalBeside(
        **_shown(found),
        before=None if before is None else Note(**shown(before)),
        similar=[Note(**shown(one)) for one in alike if one is not None],
    )


@router.post(
    "/{proposal}/approve",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_REVIEW, 404, 409, 429, of_a_person=False),
)
async def approve_proposal(proposal: _Id, desk: AtDesk, caller: Calling, ask: ApproveAsk | None = None) -> Approved:
    """Makes it a note, as it is or with edits. Never by who proposed it."""
    who, edits = await _reviewer(desk, caller), {} if ask is None else ask.changed()
    note = await review.approve(desk.resources, who, _id(proposal), edits)
    return Approved(id=proposal, note=Note(**shown(note)))


@router.post(
    "/{proposal}/reject",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_REVIEW, 404, 409, of_a_person=False),
)
async def reject_proposal(proposal: _Id, ask: RejectAsk, desk: AtDesk, caller: Calling) -> Proposal:
    """It comes to nothing."""
    rejected = await review.reject(desk.resources, await _reviewer(desk, caller), _id(proposal), ask.reason_code)
    return Proposal(**_shown(rejected))


async def _reviewer(desk: Desk, caller: Caller) -> Reviewer:
    note_shapes.check_reviewer(caller)
    credential = caller.credential
    principal = await writing.principal(desk.resources, credential)
    return Reviewer(credential.space, credential.key_id, principal)


def _id(opaque: str) -> UUID:
    return UUID(opaque.removeprefix("prop_"))


def _shown(waiting: Waiting) -> dict[str, Any]:
    proposed = waiting.proposed
    return {
        "id": proposals.opaque(waiting.id),
        "state": waiting.state,
        "origin": proposed.origin,
        "agent": waiting.agent,
        "vendor": waiting.vendor,
        **said(proposed.draft),
        "evidence": evidence_shown(proposed.evidence),
        "note": None if proposed.note is None else notes.opaque(proposed.note),
        "note_version": proposed.note_version,
        "reason_code": waiting.reason_code,
        "actor": proposed.actor,
        "decided_by": waiting.decided_by,
        "created_at": waiting.created_at,
        "expires_at": waiting.expires_at,
        "decided_at": waiting.decided_at,
    }
