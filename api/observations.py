"""/v1/observations: the caller's own log as a block or as lines, searched, flushed; and restored by an operator."""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.auth import Caller
from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.shapes import AnyText, LogAsk, ReaderIdentity, Switch, TokenBudget, reader
from memory import tokens
from memory.blocks import block
from memory.observation import Line
from memory.search import search
from models.api_key import Scope
from recall.flush import flush
from recall.log import Opened, lines, within
from recall.restore import restore
from recall.telling import tell

router = APIRouter(prefix="/v1/observations", route_class=Door, strict_content_type=False)


class ReadAsk(LogAsk):
    """With a budget, lines of high priority and recent ones stay."""

    token_budget: TokenBudget | None = None
    format: Literal["block", "json"] = "block"


class SearchAsk(LogAsk):
    """Words, and phrases in quotes."""

    query: AnyText
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class RestoreAsk(LogAsk):
    """An earlier state of the log."""

    generation: Annotated[int, Field(ge=1, le=2**53)]


class Answer(BaseModel):
    """`memory` is off where the deployment observes nothing: then every log reads as empty."""

    memory: Switch
    memory_identity: ReaderIdentity


class Days(BaseModel):
    """Both ends included."""

    start: date
    end: date


class Evidence(BaseModel):
    """A turn that a line rests on, as your chat named it; of one that is gone since, its number alone."""

    turn_id: int = Field(description="Our own number of it, as quarantine names it too.")
    conversation_id: str | None = None
    message_id: str | None = Field(None, description="Absent where the turn came without an id.")
    at: datetime | None = Field(None, description="When it was spoken.")


class Observation(BaseModel):
    """One line. `supersedes` is an earlier line's id, `refers_to` absent when vague."""

    id: int
    text: str
    kind: str
    priority: str
    observed_at: datetime
    refers_to: Days | None = None
    evidence: list[Evidence]
    supersedes: int | None = None
    tokens: int


class Found(Observation):
    """A line, and how well it answers."""

    score: float


class Block(Answer):
    """Ready text for a prompt: the same bytes until the log changes."""

    generation: int
    tokens: int
    block: str


class Lines(Answer):
    """Oldest first."""

    generation: int
    tokens: int
    observations: list[Observation]


class Results(Answer):
    """Best first."""

    generation: int
    results: list[Found]


class Flushed(Answer):
    """`due` says that the pending turns are observed as soon as a worker is free."""

    due: bool
    pending_turns: int
    pending_tokens: int


class Restored(BaseModel):
    """The number of the new generation."""

    generation: int
    memory_identity: ReaderIdentity


@router.post("/read", response_model=Block | Lines, response_model_exclude_none=True, **opens(Scope.MEMORY_READ))
async def read_observations(ask: ReadAsk, desk: AtDesk, caller: Calling) -> Block | Lines:
    """The caller's log. An owner whom nobody knows has an empty one."""
    opened, answer = await _opened(ask, desk, caller)
    if ask.format == "block":
        text = await asyncio.to_thread(block, opened.lines, ask.token_budget)
        return Block(**answer, generation=opened.generation, tokens=tokens.count(text), block=text)
    kept = opened.lines if ask.token_budget is None else within(opened.lines, ask.token_budget)
    shown = [Observation(**told) for told in await tell(desk.resources, caller.credential.space, kept)]
    return Lines(**answer, generation=opened.generation, tokens=_tokens(kept), observations=shown)


@router.post("/search", response_model_exclude_none=True, **opens(Scope.MEMORY_READ))
async def search_observations(ask: SearchAsk, desk: AtDesk, caller: Calling) -> Results:
    """Lines of the caller's log that answer the words, in any script, best first."""
    opened, answer = await _opened(ask, desk, caller)
    found = await asyncio.to_thread(search, opened.lines, ask.query, ask.limit)
    told = await tell(desk.resources, caller.credential.space, [line for line, _ in found])
    results = [Found(**line, score=round(score, 4)) for line, (_, score) in zip(told, found, strict=True)]
    return Results(**answer, generation=opened.generation, results=results)


@router.post("/flush", status_code=202, **opens(Scope.MEMORY_READ))
async def flush_observations(ask: LogAsk, desk: AtDesk, caller: Calling) -> Flushed:
    """Has what is pending by now observed now, without waiting for the threshold or the age."""
    caller.speak_for(ask.agent, ask.context)
    identity = await desk.whose(caller)
    flushed = await flush(desk.resources, caller.credential.space, identity.owner, ask.agent, ask.context)
    desk.ring(flushed.added)
    return Flushed(
        memory="on" if flushed.on else "off",
        memory_identity=reader(identity),
        due=flushed.pending_turns > 0,
        pending_turns=flushed.pending_turns,
        pending_tokens=flushed.pending_tokens,
    )


@router.post("/restore", **opens(Scope.OPERATOR, 409))
async def restore_observations(ask: RestoreAsk, desk: AtDesk, caller: Calling) -> Restored:
    """Brings an earlier generation back, with what was observed since. The one before stays, and can be restored too."""
    caller.speak_for(ask.agent, ask.context)
    identity = await desk.whose(caller)
    space = caller.credential.space
    number = await restore(desk.resources, space, identity.owner, ask.agent, ask.context, ask.generation)
    return Restored(generation=number, memory_identity=reader(identity))


async def _opened(ask: LogAsk, desk: Desk, caller: Caller) -> tuple[Opened, dict[str, Any]]:
    caller.speak_for(ask.agent, ask.context)
    identity = await desk.whose(caller)
    opened = await lines(desk.resources, caller.credential.space, identity.owner, ask.agent, ask.context)
    return opened, {"memory": "on" if opened.on else "off", "memory_identity": reader(identity)}


def _tokens(kept: Sequence[Line]) -> int:
    return sum(line.tokens for line in kept)
