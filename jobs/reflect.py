"""Reflect: a log that grew past its threshold is rewritten, as a proposal that must prove itself. Read, think, write."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateways.key_store import KeyGone
from jobs.asking import Asker, Wait
from jobs.resources import Workshop
from jobs.verdict import MEMORY_OFF, Done, Later, Nothing, Verdict
from memory import condense, reflector, tokens
from memory.checks import normalise
from memory.observation import Line, Reflection, Rewritten
from models import log as logs
from models import model_answer, observation, work
from models.content import line_digest, offset_minutes, open_line, seal_line
from models.database import driver
from models.log import Log
from models.observation import Observation
from models.work import Claim
from privacy.sealing import SealingKey

_LEVELS = (1, 2, 3, 4)  # each asks for harder condensing
_GROWN = 1.25  # times its size, before a log without a valid rewrite is tried again: a try may cost four calls over it


@dataclass(frozen=True, slots=True)
class Grown:
    """The log that a run starts from."""

    log: Log
    key: SealingKey
    rows: dict[int, Observation]
    lines: Sequence[Line]

    def sources(self, line: Rewritten) -> list[Observation]:
        """The rows that a line came from."""
        return [self.rows[source] for source in line.sources]


async def reflect(claim: Claim, workshop: Workshop) -> Verdict:
    """One rewrite of one log, or the old one kept and the failure visible."""
    if not workshop.settings.memory.observational_memory:
        return MEMORY_OFF
    grown = await _read(claim, workshop)
    if grown is None:
        return Nothing()
    try:
        reflection = await _think(claim, grown, workshop)
    except Wait as wait:
        return Later(wait.seconds, wait.why, counts=False)
    if reflection is None:
        await _keep_old(claim, grown, workshop)
    else:
        await _write(claim, grown, reflection, workshop)
    return Done()


async def _read(claim: Claim, workshop: Workshop) -> Grown | None:
    async with workshop.database.begin(claim.space_id) as tx:
        log = await logs.by_id(tx, claim.space_id, claim.payload["log_id"])
        if log is None or log.live_tokens <= workshop.settings.memory.reflector_threshold:
            return None
        if _tried_in_vain(log, workshop):
            return None
        rows = await observation.of_generation(tx, log.id, log.generation)
    try:
        key = await workshop.keys.key(log.subject_id)
    except KeyGone:  # erased since the read
        return None
    return Grown(log, key, {row.id: row for row in rows}, [open_line(row, key) for row in rows])


def _tried_in_vain(log: Log, workshop: Workshop) -> bool:
    size, _, terms = (log.failed_reflection or "").partition(" ")
    return terms == _terms(workshop) and log.live_tokens < _GROWN * int(size)


def _terms(workshop: Workshop) -> str:
    """What a rewrite is tried under: another model, or another threshold, is another try."""
    return f"{workshop.settings.memory.reflector_threshold} {workshop.settings.model.memory_worker_model}"


async def _think(claim: Claim, grown: Grown, workshop: Workshop) -> Reflection | None:
    """A smaller log that loses nothing, or None when there is no valid one."""
    threshold = workshop.settings.memory.reflector_threshold
    if workshop.asker is None:
        reflection = await workshop.mind.think(condense.reflect, grown.lines, threshold)
    else:
        parts = []
        for chunk in reflector.chunks(grown.lines, workshop.room):
            share = reflector.share(threshold, chunk, grown.lines)
            parts.append(await _ask_harder(claim, grown, chunk, share, workshop.asker))
        reflection = reflector.joined(parts)
    return reflection if 0 < sum(tokens.count(line.text) for line in reflection.lines) < threshold else None


async def _ask_harder(claim: Claim, grown: Grown, lines: Sequence[Line], share: int, asker: Asker) -> Reflection:
    """The smallest rewrite that loses nothing, each level asking for harder condensing, until one is below `share`.

    Where there is none the lines stand as they are: a stretch of two lines need not shrink for the log to.
    """
    rewrites = []
    for level in _LEVELS if len(lines) > 1 else ():
        answer = await asker.ask(claim, grown.log.subject_id, grown.key, reflector.prompt(lines, share, level))
        rewrites.append(reflector.read(answer, lines, 1 + sum(line.tokens for line in lines)))
        if rewrites[-1].reflection is not None and rewrites[-1].tokens < share:
            break
    smallest = reflector.smallest_valid(rewrites)
    return _as_it_is(lines) if smallest is None or smallest.reflection is None else smallest.reflection


def _as_it_is(lines: Sequence[Line]) -> Reflection:
    return Reflection(
        tuple(
            Rewritten(line.text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)
            for line in lines
        )
    )


async def _keep_old(claim: Claim, grown: Grown, workshop: Workshop) -> None:
    async with workshop.database.begin(claim.space_id) as tx:
        await work.complete(await driver(tx), claim)
        await model_answer.forget(tx, claim.space_id, grown.log.subject_id)
        log = await logs.lock(tx, claim.space_id, grown.log.id)
        if log is not None and log.generation == grown.log.generation:
            log.failed_reflection = f"{grown.log.live_tokens} {_terms(workshop)}"
            await logs.note_error(tx, claim.space_id, log.id, logs.NOT_REFLECTED)


async def _write(claim: Claim, grown: Grown, reflection: Reflection, workshop: Workshop) -> None:
    """The new generation, with what arrived meanwhile, in one commit; the old one stays as it is."""
    async with workshop.database.begin(claim.space_id) as tx:
        await work.complete(await driver(tx), claim)
        await model_answer.forget(tx, claim.space_id, grown.log.subject_id)
        log = await logs.lock(tx, claim.space_id, grown.log.id)
        if log is None or log.generation != grown.log.generation:
            return  # erased, or rewritten or restored meanwhile
        arrived = await observation.after(tx, log.id, log.generation, max(grown.rows))
        await observation.begin_generation(tx, log, "reflect")
        rows = [_row(log, grown, line) for line in reflection.lines]
        await observation.append(tx, [*rows, *(observation.carried(row, log.generation) for row in arrived)])
        await observation.keep_correcting(tx, log)
        log.live_tokens = await observation.live_tokens(tx, log.id, log.generation)
        log.failed_reflection = log.last_error = log.last_error_at = None


def _row(log: Log, grown: Grown, line: Rewritten) -> Observation:
    sources = grown.sources(line)
    return Observation(
        space_id=log.space_id,
        log_id=log.id,
        subject_id=log.subject_id,
        generation=log.generation,
        sealed=seal_line(grown.key, line),
        digest=line_digest(grown.key, normalise(line.text), line.refers_to),
        kind=line.kind,
        priority=line.priority,
        tokens=tokens.count(line.text),
        observed_at=line.observed_at,
        observed_offset=offset_minutes(line.observed_at),
        evidence=sorted({turn for row in sources for turn in row.evidence}),
        sources=[row.id for row in sources],
        born_at=min(row.born_at for row in sources),
    )
