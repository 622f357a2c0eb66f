"""A storm: producers, workers that die, bells that vanish. Every turn is taken in once, by one job at a time."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from config.settings import Settings
from jobs.bell import Bell
from jobs.job import BackOff, Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Verdict
from models import work
from models.database import Database, connect, driver
from models.work import Added, Claim, Letter
from scheduler.reconciler import Rounds, run_scheduler
from scheduler.worker import Staffing, run_worker

LOGS, TURNS, WORKERS = 12, 600, 3
STAFFING = Staffing(
    {QueueClass.MEMORY: 6},
    per_space=4,
    claim=timedelta(seconds=1),
    grace=timedelta(seconds=2),
    look_every=timedelta(seconds=0.3),
)


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    async with connect(settings.stores.database_url.get_secret_value()) as opened:
        await opened.pool.execute(
            "CREATE TABLE IF NOT EXISTS storm (name text PRIMARY KEY, added int NOT NULL, seen int NOT NULL DEFAULT 0)"
        )
        yield opened
        await opened.pool.execute("DROP TABLE storm")


@dataclass(slots=True)
class Storm:
    """`running` tells which logs a job is at work on; `overlaps` counts where two were, both still holding a claim."""

    database: Database
    bell: Bell
    draw: random.Random
    kind: str = field(default_factory=lambda: f"kind-{uuid4().hex}")

    def letter(self, log: int) -> Letter:
        name = f"{self.kind}:{log}"
        return Letter(self.kind, QueueClass.MEMORY, log % 3, name, name, {"log_id": log})

    async def produce(self) -> None:
        for _ in range(TURNS // 4):
            log = self.draw.randrange(LOGS)
            async with self.database.begin(1) as tx:
                connection = await driver(tx)
                await connection.execute("UPDATE storm SET added = added + 1 WHERE name = $1", f"{self.kind}:{log}")
                added = await work.add(connection, self.letter(log))
            await self.bell.ring([added] if added else [])
            await asyncio.sleep(self.draw.random() * 0.02)

    async def observe(self, claim: Claim, _: None) -> Verdict:
        row = await self.database.pool.fetchrow("SELECT added, seen FROM storm WHERE name = $1", claim.scope)
        await asyncio.sleep(self.draw.random() * 0.1)
        if self.draw.random() < 0.1:
            raise ConnectionError
        async with self.database.begin(claim.space_id) as tx:
            connection = await driver(tx)
            # No compare-and-set here, on purpose: the claim's fence alone must keep the number from going back.
            await connection.execute("UPDATE storm SET seen = $2 WHERE name = $1", claim.scope, row["added"])
            await work.complete(connection, claim)
        return Done()

    async def prepare(self) -> None:
        names = [self.letter(log).scope for log in range(LOGS)]
        await self.database.pool.executemany(
            "INSERT INTO storm (name, added) VALUES ($1, 0)", [(name,) for name in names]
        )

    async def behind(self) -> list[Any]:
        """Logs whose last turn nobody has seen, and work that is under way."""
        query = "SELECT name FROM storm WHERE name LIKE $1 AND seen <> added UNION ALL SELECT state FROM work WHERE kind = $2 AND state IN ('ready', 'claimed')"
        return list(await self.database.pool.fetch(query, f"{self.kind}:%", self.kind))


@pytest.mark.parametrize("seed", range(3))
async def test_no_turn_is_lost_whatever_dies(database: Database, settings: Settings, seed: int) -> None:
    url = settings.stores.redis_url.get_secret_value()
    bell, redis = Bell.connect(url), Redis.from_url(url)
    storm = Storm(database, bell, random.Random(seed))
    await storm.prepare()
    jobs = {
        storm.kind: Job(
            QueueClass.MEMORY, storm.observe, timedelta(seconds=5), back_off=BackOff(timedelta(seconds=0.1))
        )
    }
    stop = asyncio.Event()

    def hire() -> "asyncio.Task[None]":
        return asyncio.create_task(run_worker(database, url, jobs, None, stop, STAFFING))

    workers = [hire() for _ in range(WORKERS)]
    rounds = Rounds(timedelta(seconds=0.2), claim=timedelta(seconds=1))
    scheduler = asyncio.create_task(run_scheduler(database, bell, jobs, stop, (), rounds))
    producers = asyncio.gather(*(storm.produce() for _ in range(4)))
    while not producers.done():
        await asyncio.wait([producers], timeout=0.4)
        victim = storm.draw.randrange(WORKERS)
        workers[victim].cancel()  # no grace, no handing back: what it held has to expire
        with contextlib.suppress(asyncio.CancelledError):
            await workers[victim]
        workers[victim] = hire()
        await redis.flushall()
    await producers
    async with asyncio.timeout(40):
        while await storm.behind():  # noqa: ASYNC110 - it happens in a server
            await asyncio.sleep(0.05)
    stop.set()
    await asyncio.gather(scheduler, *workers)
    dead = await database.pool.fetchval("SELECT count(*) FROM work WHERE kind = $1 AND state = 'dead'", storm.kind)
    total = await database.pool.fetchval("SELECT sum(seen) FROM storm WHERE name LIKE $1", f"{storm.kind}:%")
    await bell.close()
    await redis.aclose()
    assert (dead, total) == (0, TURNS)


async def test_one_scope_is_never_claimed_twice_however_many_bells_ring(database: Database, settings: Settings) -> None:
    url = settings.stores.redis_url.get_secret_value()
    bell, kind, stop = Bell.connect(url), f"kind-{uuid4().hex}", asyncio.Event()
    at_work: set[str] = set()
    overlaps: list[str] = []
    runs = 0

    async def job(claim: Claim, _: None) -> Verdict:
        nonlocal runs
        runs += 1
        overlaps.extend([claim.scope] if claim.scope in at_work else [])
        at_work.add(claim.scope)
        await asyncio.sleep(0.005)
        at_work.discard(claim.scope)
        await work.complete(database.pool, claim)
        return Done()

    jobs = {kind: Job(QueueClass.MEMORY, job, timedelta(seconds=20))}
    steady = Staffing(look_every=timedelta(seconds=0.3))
    workers = [asyncio.create_task(run_worker(database, url, jobs, None, stop, steady)) for _ in range(3)]
    added: list[Added] = []
    for number in range(300):
        letter = Letter(kind, QueueClass.MEMORY, 1, f"{kind}:{number % 5}", f"{number % 5}")
        added += await work.add_many(database.pool, [(letter, None)])
        await bell.ring(added[-3:] * 2)
    left = "SELECT count(*) FROM work WHERE kind = $1 AND state <> 'done'"
    async with asyncio.timeout(30):
        while await database.pool.fetchval(left, kind):  # noqa: ASYNC110 - it happens in a server
            await asyncio.sleep(0.02)
    stop.set()
    await asyncio.gather(*workers)
    await bell.close()
    assert overlaps == []
    assert runs == len({row.id for row in added})
