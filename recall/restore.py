"""Bringing an earlier generation of a log back, without losing what was observed since."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from jobs.resources import Resources
from models import log as logs
from models import observation
from models.log import Log
from models.observation import Generation, Observation


class NoSuchGeneration(Exception):
    """The person has no such log, or the log no such generation (any more)."""


class LiveAlready(Exception):
    """That generation is the live one."""


async def restore(
    resources: Resources, space: int, subject: UUID | None, agent: str, context: str, generation: int
) -> int:
    """A new generation with the lines of that one and those that were observed since; answers its number.

    One transaction under the log's lock: a reflection or an observation that runs meanwhile finds the log moved on.
    """
    async with resources.database.begin(space) as tx:
        found = None if subject is None else await logs.find(tx, space, subject, agent, context)
        log = None if found is None else await logs.lock(tx, space, found.id)
        if log is None or await tx.get(Generation, (log.id, generation)) is None:
            raise NoSuchGeneration
        if log.generation == generation:
            raise LiveAlready
        old = await observation.of_generation(tx, log.id, generation)
        since = await _observed_since(tx, log.id, generation)
        await observation.begin_generation(tx, log, "restore")
        await observation.append(tx, [observation.carried(row, log.generation) for row in (*old, *since)])
        await _point_at_copies(tx, log)
        log.live_tokens = await observation.live_tokens(tx, log.id, log.generation)
        log.failed_reflection = None
        return log.generation


async def _observed_since(tx: AsyncSession, log_id: int, generation: int) -> Sequence[Observation]:
    # What an observer wrote has no sources; what a rewrite or a restore wrote has. A line that was carried over from
    # the old generation says what a line there says already, and the new generation takes it once.
    query = select(Observation).where(
        col(Observation.log_id) == log_id,
        col(Observation.generation) > generation,
        func.cardinality(col(Observation.sources)) == 0,
    )
    return (await tx.execute(query.order_by(col(Observation.id)))).scalars().all()


async def _point_at_copies(tx: AsyncSession, log: Log) -> None:
    """A correction goes on correcting: it points at the copy of its line, or of the line which that was rewritten from."""
    lines = await observation.of_generation(tx, log.id, log.generation)
    copies = {line.sources[0]: line.id for line in lines}
    corrections = [line for line in lines if line.supersedes is not None]
    ids = [line.supersedes for line in corrections]
    corrected = select(col(Observation.id), col(Observation.sources)).where(col(Observation.id).in_(ids))
    sources = {row.id: row.sources for row in await tx.execute(corrected)}
    for line in corrections:
        olds = [line.supersedes, *sources.get(line.supersedes, [])]
        line.supersedes = next((copies[old] for old in olds if old in copies), None)
