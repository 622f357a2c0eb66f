"""Accounting for one log's turns: each in exactly one state, and why the pending ones still wait."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from jobs.letters import observe_letter
from jobs.resources import Resources, rhythm
from models import log as logs
from models import turn
from models.log import Log
from models.turn import State, Tally
from models.work import Work
from recall.words import Standing, why_not_yet

STATES = ("pending", "observed", "skipped", "quarantined", "expired", "erased")


@dataclass(frozen=True, slots=True)
class Coverage:
    """`turns` counts by state, `skipped` by reason. `last_error` is a code; `why_not_yet` is one line of words."""

    on: bool
    why_not_yet: str
    turns: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    skipped: Mapping[str, int] = field(default_factory=dict)
    pending_tokens: int = 0
    generation: int = 1  # the first, as a read says of a log that has not begun
    last_error: str | None = None
    last_error_at: datetime | None = None


async def coverage(resources: Resources, space: int, subject: UUID | None, agent: str, context: str) -> Coverage:
    """The account of one log, also while memory is off; an empty one for an unknown subject."""
    on = resources.settings.memory.observational_memory
    nothing = Coverage(on=on, why_not_yet="nothing is pending" if on else "memory is off")
    if subject is None:
        return nothing
    async with resources.database.begin(space) as tx:
        log = await logs.find(tx, space, subject, agent, context)
        if log is None:
            return nothing
        tally = await turn.tally(tx, log.id)
        standing = await _standing(tx, resources, log, _held(tally))
    return Coverage(
        on=on,
        why_not_yet=why_not_yet(standing),
        turns=_by_state(tally, log),
        skipped={str(one.reason): one.turns for one in tally if one.state == State.SKIPPED},
        pending_tokens=log.pending_tokens,
        generation=log.generation,
        last_error=log.last_error,
        last_error_at=log.last_error_at,
    )


def _by_state(tally: Sequence[Tally], log: Log) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for one in tally:
        counted[one.state] += one.turns
    counted["erased"] = log.erased_turns
    counted["expired"] += log.expired_turns
    return {state: counted[state] for state in STATES}


def _held(tally: Sequence[Tally]) -> int:
    return sum(one.turns for one in tally if one.state == State.QUARANTINED)


async def _standing(tx: AsyncSession, resources: Resources, log: Log, quarantined: int) -> Standing:
    pace = rhythm(resources.settings)
    now: datetime = (await tx.execute(select(func.now()))).scalar_one()
    running, ready = await _work(tx, log)
    return Standing(
        on=resources.settings.memory.observational_memory,
        pending_turns=log.pending_turns,
        pending_tokens=log.pending_tokens,
        threshold=pace.threshold,
        due_at=pace.due(log, now),
        now=now,
        asked=log.flush_through > log.observed_through,
        running=None if running is None else running.kind,
        next_try=None if ready is None else ready.run_at,
        trouble=None if ready is None else ready.last_error,
        quarantined=quarantined,
    )


async def _work(tx: AsyncSession, log: Log) -> tuple[Work | None, Work | None]:
    """What a worker is doing on this log, and the observation that waits."""
    letter = observe_letter(log.space_id, log.id)
    claimed = (col(Work.state) == "claimed") & (col(Work.scope) == letter.scope)
    ready = (col(Work.state) == "ready") & (col(Work.kind) == letter.kind) & (col(Work.dedup) == letter.dedup)
    rows = (await tx.execute(select(Work).where(or_(claimed, ready)))).scalars().all()
    by_state = {row.state: row for row in rows}
    return by_state.get("claimed"), by_state.get("ready")
