"""/v1/quarantine: turns that no answer could be had about, and sending one back."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from models.api_key import Scope
from models.quarantine import Quarantined
from recall.quarantine import held, retry

router = APIRouter(prefix="/v1/quarantine", route_class=Door, strict_content_type=False)

_Number = Annotated[int, Path(ge=1, le=2**63 - 1)]


class Attempt(BaseModel):
    """One answer that was of no use."""

    outcome: str
    at: datetime


class Held(BaseModel):
    """A turn that was set aside, by ids."""

    id: int
    log_id: int
    turn_id: int
    reason: str
    attempts: list[Attempt]
    since: datetime


class HeldPage(BaseModel):
    """Oldest first. `next` is the `after` of the next page, absent on the last one."""

    quarantine: list[Held]
    next: int | None = None


class Retried(BaseModel):
    """The turn is pending again, at the end of its log."""

    id: int
    state: Literal["pending"] = "pending"


@router.get(
    "",
    response_model_exclude_none=True,
    **opens(Scope.OPERATOR, 422, body=False, of_a_person=False),
)
async def list_quarantine(
    desk: AtDesk,
    caller: Calling,
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> HeldPage:
    """What the space has set aside now."""
    key = caller.credential
    records = await held(desk.resources, key.space, key.agent, after, limit + 1)
    page = [_held(record) for record in records[:limit]]
    return HeldPage(quarantine=page, next=page[-1].id if len(records) > limit else None)


@router.post(
    "/{record_id}/retry",
    status_code=202,
    **opens(Scope.OPERATOR, 404, 409, 422, body=False, of_a_person=False),
)
async def retry_quarantined(record_id: _Number, desk: AtDesk, caller: Calling) -> Retried:
    """Sends one turn back to be observed, now."""
    key = caller.credential
    desk.ring(await retry(desk.resources, key.space, key.agent, record_id))
    return Retried(id=record_id)


def _held(record: Quarantined) -> Held:
    return Held(
        id=record.id,
        log_id=record.log_id,
        turn_id=record.turn_id,
        reason=record.reason,
        attempts=[Attempt(**attempt) for attempt in record.attempts],
        since=record.created_at,
    )
