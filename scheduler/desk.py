"""The desk: what the lanes of one worker share, and how an errand that has run is settled."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from asyncpg import Connection, Pool

from jobs.bell import Bell
from jobs.job import R, Registry
from jobs.verdict import Done, Hopeless, Later, Nothing, Verdict
from models import release
from models.work import Claim
from scheduler import errand as errands
from scheduler import outage
from scheduler.closing import Closer
from scheduler.errand import Errand, Stop
from scheduler.heartbeat import Heartbeat
from scheduler.outage import Outage
from scheduler.tally import Tally

T = TypeVar("T")

Trusts = Callable[[], Awaitable[bool]]
"""Whether the data are the ones that the erasure ledger knows: else nothing is claimed."""

_PAUSE = 0.5  # seconds between tries while the database is away

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Desk(Generic[R]):
    """One worker's shared parts. `away` knows whether PostgreSQL is there, `trusts` whether its data may be worked on."""

    owner: str
    pool: Pool
    bell: Bell
    jobs: Registry[R]
    resources: R
    closer: Closer
    heartbeat: Heartbeat
    away: Outage
    tally: Tally
    trusts: Trusts

    async def work(self, _: dict[Any, Any], errand: Errand[R]) -> None:
        """arq's function, in a task of its own: runs what is claimed, and writes down what became of it."""
        first = errand.claims[0]
        self.heartbeat.held.add(errand)
        try:
            structlog.contextvars.bind_contextvars(work_id=first.id, kind=first.kind, space=first.space_id)
            verdict = await errands.run(errand, self.resources)
            outcome = await self._settle(errand, verdict)
        finally:
            self.heartbeat.held.discard(errand)
        self.tally.ran(first.kind, outcome, len(errand.claims), errand.seconds)

    async def _settle(self, errand: Errand[R], verdict: Verdict | Stop) -> str:
        match verdict:
            case Done():
                return "done"
            case Nothing():
                return "done" if await self.closer.complete(errand.claims) else "lost"
            case Later() as later:
                return "/".join({await self._again(claim, errand, later) for claim in errand.claims})
            case Hopeless(error):
                return "/".join({await self._bury(claim, error) for claim in errand.claims})
            case Stop():
                for claim in errand.claims:
                    await self._hand_back(claim)
                return verdict.value

    async def _again(self, claim: Claim, errand: Errand[R], later: Later) -> str:
        when = errands.settled(claim, errand.job, later)
        if isinstance(when, Hopeless):
            return await self._bury(claim, when.error)
        delay, counts = when[0], later.counts
        await self._write(lambda db: release.retry_later(db, claim, delay, later.error, counts=counts))
        return "again" if counts else "waits"

    async def _bury(self, claim: Claim, error: str) -> str:
        if await self._write(lambda db: release.bury(db, claim, error)):
            _log.error("work_died", kind=claim.kind, work_id=claim.id, attempt=claim.attempt, error=error)
        return "dead"

    async def _hand_back(self, claim: Claim) -> None:
        # Of a claim that was lost nothing is left to hand back, and of a batch with a lost claim the others are.
        added = await self._write(lambda db: release.give_back(db, claim))
        await self.bell.ring([added] if added else [])

    async def _write(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        while True:
            try:
                async with self.pool.acquire() as connection:
                    written = await statement(connection)
            except outage.DATABASE as error:
                self.away.began(error)
                await asyncio.sleep(_PAUSE)
            else:
                self.away.ended()
                return written
