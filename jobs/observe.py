"""Observe: the oldest pending turns of one log become observations, and its cursor moves. Read, think, write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateways.key_store import KeyGone
from jobs.asking import Wait
from jobs.letters import observe_letter, reflect_letter
from jobs.narrowing import NoUse, Question, Thought, earlier, think
from jobs.resources import Workshop
from jobs.verdict import MEMORY_OFF, Done, Later, Nothing, Verdict
from memory import batches, extractive, tokens
from memory.checks import normalise
from memory.observation import MAX_TEXT, Draft, Line
from memory.turn import Turn
from models import log as logs
from models import model_answer, observation, quarantine, turn, work
from models.announcement import Event, announce
from models.columns import utc_now
from models.content import line_digest, offset_minutes, open_line, open_turn, seal_line
from models.database import driver
from models.log import Log
from models.observation import Observation
from models.quarantine import Quarantined
from models.work import Added, Claim, Letter
from privacy.masking import mask
from privacy.policy import of_regions
from privacy.sealing import SealingKey

_ROWS = 2_000  # pending turns read at once
_TAIL = 60  # newest lines that the observer sees
_SMALLEST_BATCH = 8_000  # tokens: a lower threshold observes sooner, not in crumbs
_UNTIL_MASKED = 300.0  # seconds; the job that masks them pulls this forward
_DEATHS_ALONE = 10  # runs that may break, with their worker or without, over one turn before it is set aside

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pending:
    """What a run starts from. `seqs` are the turns' numbers in their log, by the turns' ids."""

    log: Log
    key: SealingKey
    turns: Sequence[Turn]
    seqs: dict[int, int]
    tail: Sequence[Line]


async def observe(claim: Claim, workshop: Workshop) -> Verdict:
    """One batch of one log. What is left over becomes a work row in the same commit."""
    if not workshop.settings.memory.observational_memory:
        return MEMORY_OFF
    try:
        pending = await _read(claim, workshop)
        if pending is None:
            return Nothing()
        thought = await _think(claim, pending, workshop)
    except Wait as wait:
        await _note(claim, claim.payload["log_id"], wait.why, workshop)
        return Later(wait.seconds, wait.why, counts=False)
    except NoUse as none:
        await _remember(claim, claim.payload["log_id"], none, workshop)
        return Later(None, none.outcome, counts=True)
    await workshop.bell.ring(await _write(claim, pending, thought, workshop))
    return Done()


async def _read(claim: Claim, workshop: Workshop) -> Pending | None:
    async with workshop.database.begin(claim.space_id) as tx:
        log = await logs.by_id(tx, claim.space_id, claim.payload["log_id"])
        if log is None:
            return None
        rows = await turn.pending_after(tx, log.id, log.observed_through, _ROWS, _budget(workshop), batches.REACH)
        tail = await observation.newest(tx, log.id, log.generation, _TAIL)
        if not rows and await turn.unmasked(tx, log.id, 1):
            raise Wait("unmasked", _UNTIL_MASKED)
    if not rows:
        return None
    try:
        keys = await workshop.keys.keys([log.subject_id, *(row.subject_id for row in rows)])
    except KeyGone:  # erased since the read: there is nothing left to observe
        return None
    turns = [open_turn(row, keys[row.subject_id]) for row in rows]
    lines = [open_line(row, keys[log.subject_id]) for row in tail]
    return Pending(log, keys[log.subject_id], turns, {row.id: row.seq for row in rows}, lines)


async def _think(claim: Claim, pending: Pending, workshop: Workshop) -> Thought:
    turns = _first(claim, pending, workshop)
    if len(turns) == 1 and claim.attempt > _DEATHS_ALONE:
        return Thought(turns, set_aside="crash", attempts=earlier(claim))
    if workshop.asker is None:
        ordered = batches.in_conversation_order(turns)
        return Thought(turns, await workshop.mind.think(extractive.observe, ordered, pending.tail))
    question = Question(workshop.asker, claim, pending.log.subject_id, pending.key, pending.tail, workshop.room)
    thought = await think(question, turns)
    # A model may join what stood apart in the turns, and was no number or address there.
    policy = of_regions(workshop.settings.privacy.phone_regions)
    return replace(thought, drafts=[replace(draft, text=mask(draft.text, policy).text) for draft in thought.drafts])


def _first(claim: Claim, pending: Pending, workshop: Workshop) -> Sequence[Turn]:
    """As many of the oldest turns as go into one question, and fewer where that went wrong before."""
    if earlier(claim):
        return pending.turns[:1]  # the one that got no answer of use
    count = batches.prefix(pending.turns, _budget(workshop))
    # After a first death the same is asked again: its answer may be kept. Then a batch is halved with each further
    # death, until the turn that runs break over is alone.
    return pending.turns[: max(1, count >> max(0, claim.attempt - 2))]


def _budget(workshop: Workshop) -> int:
    """The tokens of one question's turns."""
    return min(max(workshop.settings.memory.observer_threshold, _SMALLEST_BATCH), workshop.room)


async def _write(claim: Claim, pending: Pending, thought: Thought, workshop: Workshop) -> list[Added]:
    """Cursor, observations, turns' states and the work to come, in one commit, or none of it."""
    through = pending.seqs[thought.turns[-1].id]
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await work.complete(connection, claim)
        await model_answer.forget(tx, claim.space_id, pending.log.subject_id)
        log = await logs.lock(tx, claim.space_id, pending.log.id)
        if log is None:
            return []  # erased: nothing of this may stay
        if log.observed_through != pending.log.observed_through:
            return await work.add_many(connection, await _letters(tx, log, workshop))  # somebody was first
        log.observed_through = through
        if thought.set_aside is None:
            await turn.mark_observed(tx, log.id, [said.id for said in thought.turns], log.generation)
            await _append(tx, log, pending.key, thought.drafts)
            _note_success(log)
        else:
            await quarantine.put(tx, _quarantined(log, thought))
            await announce(connection, log.space_id, Event.TURN_QUARANTINED, {"turn": thought.turns[0].id})
            _log.warning("turn_set_aside", log_id=log.id, turn_id=thought.turns[0].id, reason=thought.set_aside)
        await _count_down(tx, log, thought.turns)
        return await work.add_many(connection, await _letters(tx, log, workshop))


async def _append(tx: AsyncSession, log: Log, key: SealingKey, drafts: Iterable[Draft]) -> None:
    rows = [_row(log, key, draft) for draft in drafts if draft.text.strip() and len(draft.text) <= MAX_TEXT]
    added = set(await observation.append(tx, rows))
    if added:
        log.live_tokens = await observation.live_tokens(tx, log.id, log.generation)


def _note_success(log: Log) -> None:
    if log.failed_reflection is None:
        log.last_error = log.last_error_at = None
    else:
        log.last_error = logs.NOT_REFLECTED  # that stays to be seen, whatever is observed


def _row(log: Log, key: SealingKey, draft: Draft) -> Observation:
    return Observation(
        space_id=log.space_id,
        log_id=log.id,
        subject_id=log.subject_id,
        generation=log.generation,
        sealed=seal_line(key, draft),
        digest=line_digest(key, normalise(draft.text), draft.refers_to),
        kind=draft.kind,
        priority=draft.priority,
        tokens=tokens.count(draft.text),
        observed_at=draft.observed_at,
        observed_offset=offset_minutes(draft.observed_at),
        evidence=list(draft.evidence),
        sources=[],
        supersedes=draft.supersedes,
        born_at=utc_now(),
    )


def _quarantined(log: Log, thought: Thought) -> Quarantined:
    return Quarantined(
        space_id=log.space_id,
        log_id=log.id,
        turn_id=thought.turns[0].id,
        reason=str(thought.set_aside),
        attempts=[attempt.record() for attempt in thought.attempts],
    )


async def _count_down(tx: AsyncSession, log: Log, turns: Sequence[Turn]) -> None:
    await tx.flush()
    log.pending_turns -= len(turns)
    log.pending_tokens -= sum(said.tokens for said in turns)
    log.oldest_pending_at = await turn.oldest_pending(tx, log.id)


async def _letters(tx: AsyncSession, log: Log, workshop: Workshop) -> list[tuple[Letter, datetime | None]]:
    letters: list[tuple[Letter, datetime | None]] = []
    now: datetime = (await tx.execute(select(func.now()))).scalar_one()
    due = workshop.rhythm.due(log, now)
    if due is not None:
        letters.append((observe_letter(log.space_id, log.id), due))
    if log.live_tokens > workshop.settings.memory.reflector_threshold:
        letters.append((reflect_letter(log.space_id, log.id), now))
    return letters


async def _note(claim: Claim, log_id: int, why: str, workshop: Workshop) -> None:
    """Says on the log why it waits; coverage reads it."""
    _log.info("observation_waits", log_id=log_id, why=why, work_id=claim.id)
    async with workshop.database.begin(claim.space_id) as tx:
        await logs.note_error(tx, claim.space_id, log_id, why)


async def _remember(claim: Claim, log_id: int, none: NoUse, workshop: Workshop) -> None:
    """As `_note`, and the attempts so far, for the next try or the quarantine."""
    _log.warning("answer_was_of_no_use", log_id=log_id, outcome=none.outcome, work_id=claim.id)
    async with workshop.database.begin(claim.space_id) as tx:
        await work.advance(await driver(tx), claim, none.progress())
        await logs.note_error(tx, claim.space_id, log_id, none.outcome)
