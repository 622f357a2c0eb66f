"""Re-mask: turns that were stored by the local layer alone are read once more by the models layer, and then count.

Until then nobody observes them, and nobody but their own caller is shown them. Read, ask, write.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateways.analyzer import Analyzer, AnalyzerAway
from gateways.key_store import KeyGone
from jobs.letters import observe_letter, remask_letter
from jobs.resources import Workshop
from jobs.verdict import Done, Later, Nothing, Verdict
from memory import tokens
from memory.turn import ToolCall, Turn
from models import log as logs
from models import name as names
from models import policy as policies
from models import pseudonym as pseudonyms
from models import space as spaces
from models import turn, work
from models.content import message_id, open_turn, seal_turn
from models.database import driver
from models.log import Log
from models.pseudonym import Pseudonyms
from models.turn import State, StoredTurn
from models.work import Added, Claim, Letter
from privacy.kind import PLACEHOLDER
from privacy.known import Known
from privacy.masking import blotted, mask
from privacy.policy import Policy, of_regions
from privacy.sealing import Sealed, SealingKey
from privacy.span import Span

_ALL_PERSONAL = re.compile(r"<[A-Z_]+>")
_AT_ONCE = 20  # turns of one run
_TRIES = 5  # after which a text that no model can read, though others can be, is masked wholly

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The first turns of a log that wait, and what they are masked by."""

    log: Log
    rows: Sequence[StoredTurn]
    keys: Mapping[UUID, SealingKey]
    policy: Policy
    known: Mapping[UUID, Known]
    given: Mapping[UUID, Pseudonyms]


@dataclass(frozen=True, slots=True)
class Remasked:
    """A turn as the models layer leaves it."""

    row: StoredTurn
    sealed: Sealed
    tokens: int


async def remask(claim: Claim, workshop: Workshop) -> Verdict:
    """A few turns of one log. What is left becomes work in the same commit, and so does observing them."""
    waiting = await _read(claim, workshop)
    if waiting is None:
        return Nothing()
    look = _Look(workshop.analyzer, claim.attempt)
    try:
        remasked = [await _mask(row, waiting, look) for row in waiting.rows]
    except AnalyzerAway as away:
        _log.warning("analyzer_away", log_id=waiting.log.id, why=str(away), work_id=claim.id)
        return Later(None, f"analyzer_{away}")
    added = await _write(claim, waiting, remasked, workshop)
    if added is None:
        return Later(None, "pseudonyms_moved")
    await workshop.bell.ring(added)
    return Done()


async def _read(claim: Claim, workshop: Workshop) -> Waiting | None:
    """None where nothing waits, or whose it was is erased."""
    space = claim.space_id
    async with workshop.database.begin(space) as tx:
        log = await logs.by_id(tx, space, claim.payload["log_id"])
        rows = [] if log is None else await turn.unmasked(tx, log.id, _AT_ONCE)
    if log is None or not rows:
        return None
    speakers = {row.subject_id for row in rows}
    async with workshop.database.begin(space) as tx:
        connection = await driver(tx)
        rules, lookup = await policies.rules(connection, space), await spaces.lookup_key(connection, space)
        called = {one: (await names.callings(connection, space, [one, log.subject_id]))[1] for one in speakers}
    wanted = {lookup, log.subject_id, *speakers, *(one.subject for said in called.values() for one in said)}
    try:
        keys = await workshop.keys.keys(sorted(wanted))
    except KeyGone:
        return None
    policy = policies.masking(rules, keys[lookup], of_regions(workshop.settings.privacy.phone_regions))
    known = {one: names.compiled(said, keys) for one, said in called.items()}
    return Waiting(log, rows, keys, policy, known, await _given(space, [keys[one] for one in speakers], workshop))


async def _given(space: int, speakers: Sequence[SealingKey], workshop: Workshop) -> dict[UUID, Pseudonyms]:
    async with workshop.database.begin(space) as tx:
        return {key.id: await pseudonyms.read(await driver(tx), space, key) for key in speakers}


@dataclass(frozen=True, slots=True)
class _Look:
    """One run's way to the models layer; without one there is nothing more to find."""

    analyzer: Analyzer | None
    attempt: int

    async def persons(self, text: str) -> list[Span] | None:
        """Names outside placeholders; None where no model can read this text, and so nobody may."""
        if self.analyzer is None:
            return []
        try:
            return _outside_placeholders(text, await self.analyzer.persons(text))
        except AnalyzerAway as away:
            if self.attempt < _TRIES or not await self.analyzer.works():
                raise
            _log.error("text_unreadable_to_models", why=str(away))
            return None


async def _mask(row: StoredTurn, waiting: Waiting, look: _Look) -> Remasked:
    key = waiting.keys[row.subject_id]
    said = open_turn(row, key)

    async def masked(text: str) -> str:
        found = await look.persons(text)
        if found is None:
            return blotted(text)
        known, given = waiting.known[row.subject_id], waiting.given[row.subject_id].given
        # A long text must not hold up the claims' renewal.
        return (await asyncio.to_thread(mask, text, waiting.policy, known, extra=found, pseudonyms=given)).text

    text, name = await masked(said.text), None if said.name is None else await masked(said.name)
    if name is not None and _ALL_PERSONAL.fullmatch(name):
        name = None  # what is left of it names nobody
    calls = tuple(
        [ToolCall(call.id, await masked(call.name), await masked(call.arguments)) for call in said.tool_calls]
    )
    return Remasked(row, _sealed(row, key, said, text, name, calls), tokens.of_turn(text, calls))


def _sealed(
    row: StoredTurn, key: SealingKey, said: Turn, text: str, name: str | None, calls: tuple[ToolCall, ...]
) -> Sealed:
    named = message_id(row.sealed, key)
    return seal_turn(key, text, message_id=named, name=name, tool_calls=calls, tool_call_id=said.tool_call_id)


def _outside_placeholders(text: str, spans: Sequence[Span]) -> list[Span]:
    """What is masked already stays as it is, also in the middle of what a model takes for a name."""
    taken = [found.span() for found in PLACEHOLDER.finditer(text)] if "<" in text else []
    left = list(spans)
    for start, end in taken:
        left = [part for span in left for part in _around(span, start, end)]
    return [_trimmed(text, span) for span in left if any(map(str.isalnum, text[span.start : span.end]))]


def _trimmed(text: str, span: Span) -> Span:
    said = text[span.start : span.end]
    return Span(span.end - len(said.lstrip()), span.start + len(said.rstrip()), span.kind)


def _around(span: Span, start: int, end: int) -> list[Span]:
    if span.end <= start or end <= span.start:
        return [span]
    parts = (Span(span.start, start, span.kind), Span(end, span.end, span.kind))
    return [part for part in parts if part.start < part.end]


async def _write(
    claim: Claim, waiting: Waiting, remasked: Sequence[Remasked], workshop: Workshop
) -> list[Added] | None:
    """The turns, their log's count and the work to come, in one commit. None: other pseudonyms were given meanwhile."""
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        log = await logs.lock(tx, claim.space_id, waiting.log.id)
        if log is not None:
            for subject, given in waiting.given.items():
                if given.grown and not await pseudonyms.keep(connection, claim.space_id, waiting.keys[subject], given):
                    return None
            await _keep(tx, log, remasked)
            added = await work.add_many(connection, await _letters(tx, log, workshop))
        await work.complete(connection, claim)
    return [] if log is None else added


async def _keep(tx: AsyncSession, log: Log, remasked: Sequence[Remasked]) -> None:
    for one in remasked:
        before = one.row.tokens
        if await turn.remask(tx, one.row.id, one.sealed, one.tokens) and one.row.state == State.PENDING:
            log.pending_tokens += one.tokens - before


async def _letters(tx: AsyncSession, log: Log, workshop: Workshop) -> list[tuple[Letter, datetime | None]]:
    """More of the same where there is more, and observing where that is due."""
    now = (await tx.execute(select(func.now()))).scalar_one()
    due = workshop.rhythm.due(log, now)
    letters: list[tuple[Letter, datetime | None]] = []
    if due is not None:
        letters.append((observe_letter(log.space_id, log.id), due))
    if await turn.unmasked(tx, log.id, 1):
        letters.append((remask_letter(log.space_id, log.id), now))
    return letters
