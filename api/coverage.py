"""POST /v1/coverage/read: every turn of a log in its state, and why not yet."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import LogAsk, ReaderIdentity, Switch, reader
from models.api_key import Scope
from recall.coverage import coverage

router = APIRouter(route_class=Door, strict_content_type=False)


class Turns(BaseModel):
    """Each accepted turn is counted in exactly one of these."""

    pending: int
    observed: int
    skipped: int
    quarantined: int
    expired: int
    erased: int


class LastError(BaseModel):
    """Why the log's work last had to wait, as a code."""

    code: str
    at: datetime | None


class Covered(BaseModel):
    """The account of one log."""

    memory: Switch
    memory_identity: ReaderIdentity
    turns: Turns
    skipped_by_reason: dict[str, int]
    pending_tokens: int
    generation: int
    last_error: LastError | None
    why_not_yet: str = Field(description="In words, with numbers and codes only.")


@router.post("/v1/coverage/read", **opens(Scope.MEMORY_READ))
async def read_coverage(ask: LogAsk, desk: AtDesk, caller: Calling) -> Covered:
    """How far a log has come. An owner whom nobody knows has an empty account."""
    caller.speak_for(ask.agent, ask.context)
    identity = await desk.whose(caller)
    account = await coverage(desk.resources, caller.credential.space, identity.owner, ask.agent, ask.context)
    error = account.last_error
    return Covered(
        memory="on" if account.on else "off",
        memory_identity=reader(identity),
        turns=Turns(**account.turns),
        skipped_by_reason=dict(account.skipped),
        pending_tokens=account.pending_tokens,
        generation=account.generation,
        last_error=None if error is None else LastError(code=error, at=account.last_error_at),
        why_not_yet=account.why_not_yet,
    )
