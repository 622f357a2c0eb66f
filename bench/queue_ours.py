"""No-op jobs through this project's queue: `python -m bench.queue_ours DATABASE_URL REDIS_URL JOBS`."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

import structlog
import uvloop
from asyncpg import Pool

from bench.peers.clock import Clock, percentiles
from jobs.bell import Bell
from jobs.job import BulkJob, Job, Registry
from jobs.letters import QueueClass
from jobs.verdict import Done, Nothing, Verdict
from models import work
from models.database import Database, connect
from models.work import Claim, Letter, Work
from scheduler.worker import Staffing, run_worker

_LIMIT = timedelta(seconds=60)
_SPACES = 20
_PROBES = 150


@dataclass(slots=True)
class Bench:
    """One worker process and what it is given."""

    database: Database
    bell: Bell
    redis_url: str
    clock: Clock = field(default_factory=Clock)
    numbers: "count[int]" = field(default_factory=count)

    async def nothing(self, _: Claim, __: None) -> Verdict:
        self.clock.ran()
        return Nothing()

    async def own_transaction(self, claim: Claim, _: None) -> Verdict:
        self.clock.ran()
        async with self.database.pool.acquire() as connection:
            await work.complete(connection, claim)
        return Done()

    async def many(self, claims: Sequence[Claim], _: None) -> Verdict:
        self.clock.ran(len(claims))
        async with self.database.pool.acquire() as connection:
            await work.complete_many(connection, claims)
        return Done()

    @property
    def jobs(self) -> Registry[None]:
        return {
            "nothing": Job(QueueClass.MEMORY, self.nothing, _LIMIT),
            "own": Job(QueueClass.MEMORY, self.own_transaction, _LIMIT),
            "many": BulkJob(QueueClass.HOUSEKEEPING, self.many, _LIMIT),
        }

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        staffing = Staffing(per_space=1000)
        worker = asyncio.create_task(run_worker(self.database, self.redis_url, self.jobs, None, stop, staffing))
        yield
        stop.set()
        await worker

    async def send(self, kind: str, rows: int) -> None:
        queue_class = self.jobs[kind].queue_class
        for first in range(0, rows, 500):
            names = [str(next(self.numbers)) for _ in range(min(500, rows - first))]
            letters = [Letter(kind, queue_class, int(name) % _SPACES, f"scope:{name}", name) for name in names]
            added = await work.add_many(self.database.pool, [(letter, None) for letter in letters])
            await self.bell.ring(added)

    async def drained(self, kind: str, rows: int) -> float:
        """Rows a second, from the first run to the last durable completion, of a queue that was filled before."""
        await self.send(kind, rows)
        self.clock.expect(rows)
        async with self.working():
            await self.clock.all_ran.wait()
            await _nothing_left(self.database.pool)
            return rows / self.clock.since_first()

    async def latency(self) -> tuple[float, float]:
        """Milliseconds from the begin of the adding transaction to the begin of the job: p50, p99."""
        took = []
        async with self.working():
            await asyncio.sleep(0.5)
            for _ in range(_PROBES):
                self.clock.expect(1)
                began = time.perf_counter()
                await self.send("nothing", 1)
                await self.clock.all_ran.wait()
                took.append(self.clock.first - began)
                await asyncio.sleep(0.03)
        return percentiles(took)


async def _nothing_left(pool: Pool) -> None:
    left = "SELECT count(*) FROM work WHERE state IN ('ready', 'claimed')"
    while await pool.fetchval(left):  # noqa: ASYNC110 - it happens in a server
        await asyncio.sleep(0.005)


async def main(database_url: str, redis_url: str, rows: int) -> None:
    bell = Bell.connect(redis_url)
    async with connect(database_url) as database:
        async with database.engine.begin() as connection:
            await connection.run_sync(Work.metadata.tables["work"].drop, checkfirst=True)
            await connection.run_sync(Work.metadata.tables["work"].create)
        bench = Bench(database, bell, redis_url)
        figures = {
            "single": await bench.drained("nothing", rows),
            "single_own_transaction": await bench.drained("own", rows // 2),
            "bulk": await bench.drained("many", rows * 4),
        }
        p50, p99 = await bench.latency()
    await bell.close()
    print(json.dumps({**{name: round(one) for name, one in figures.items()}, "p50_ms": p50, "p99_ms": p99}))


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
