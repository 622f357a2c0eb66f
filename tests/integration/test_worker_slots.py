"""Who gets a worker's slots: each class and space its share, many rows at once, and what it cannot run waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from arq.constants import job_key_prefix
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis
from structlog.testing import capture_logs

from jobs import wire
from jobs.bell import Bell
from jobs.job import BulkJob, Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Nothing, Verdict
from models import work
from models.database import Database
from models.work import Claim
from tests.integration.workbench import LIMIT, QUIET, WATCHFUL, Jobs, letter, nothing, send, state, until, until_state


async def test_a_worker_that_stops_finishes_what_is_short_and_hands_back_what_is_long(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    began: asyncio.Queue[str] = asyncio.Queue()
    stopped = asyncio.Event()

    async def short(_: Claim, __: None) -> Verdict:
        began.put_nowait("short")
        await stopped.wait()
        return Nothing()

    async def long(_: Claim, __: None) -> Verdict:
        began.put_nowait("long")
        await asyncio.Event().wait()
        return Nothing()

    jobs: Jobs = {
        kind: Job(QueueClass.MEMORY, short, LIMIT),
        f"{kind}-long": Job(QueueClass.INTERACTIVE, long, LIMIT),
    }
    async with working(jobs, replace(QUIET, grace=timedelta(seconds=4))) as stop:
        brief, lengthy = await send(
            database, bell, letter(kind), letter(f"{kind}-long", queue_class=QueueClass.INTERACTIVE)
        )
        assert {await began.get(), await began.get()} == {"short", "long"}
        stop.set()
        (unheard,) = await send(database, bell, letter(kind))
        stopped.set()
    assert await state(database, brief.id) == "done"
    assert await state(database, unheard.id) == "ready"
    row = await database.pool.fetchrow("SELECT state, attempt, crashes FROM work WHERE id = $1", lengthy.id)
    assert tuple(row) == ("ready", 0, 0)


async def test_a_flood_in_one_class_leaves_the_others_their_slots(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    free = asyncio.Event()

    async def blocked(_: Claim, __: None) -> Verdict:
        await free.wait()
        return Nothing()

    jobs: Jobs = {
        kind: Job(QueueClass.MEMORY, blocked, LIMIT),
        f"{kind}-person": Job(QueueClass.INTERACTIVE, nothing, LIMIT),
    }
    async with working(jobs):
        await send(database, bell, *(letter(kind, space) for space in range(200)))
        (asked,) = await send(database, bell, letter(f"{kind}-person", queue_class=QueueClass.INTERACTIVE))
        await until_state(database, asked, "done")
        free.set()


async def test_a_space_has_no_more_runs_than_its_cap_and_the_others_go_on(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    free, running, most = asyncio.Event(), 0, 0

    async def blocked(claim: Claim, _: None) -> Verdict:
        nonlocal running, most
        if claim.space_id == 1:
            running += 1
            most = max(most, running)
            await free.wait()
            running -= 1
        return Nothing()

    async with working({kind: Job(QueueClass.MEMORY, blocked, LIMIT)}, replace(WATCHFUL, per_space=3)):
        flood = await send(database, bell, *(letter(kind, 1) for _ in range(50)))
        others = await send(database, bell, *(letter(kind, space) for space in range(2, 40)))
        for one in others:
            await until_state(database, one, "done")
        assert most == 3
        free.set()
        for one in flood:
            await until_state(database, one, "done")
    assert most == 3


async def test_bulk_work_is_run_many_rows_at_a_time(database: Database, bell: Bell, kind: str, working: Any) -> None:
    batches: list[int] = []

    async def many(claims: Sequence[Claim], _: None) -> Verdict:
        batches.append(len(claims))
        async with database.pool.acquire() as connection, connection.transaction():
            await work.complete_many(connection, claims)
        return Done()

    jobs: Jobs = {kind: BulkJob(QueueClass.HOUSEKEEPING, many, LIMIT, batch=50)}
    added = await work.add_many(
        database.pool, [(letter(kind, queue_class=QueueClass.HOUSEKEEPING), None) for _ in range(400)]
    )
    async with working(jobs):
        await until(lambda: bell.ring(added[:1]))
        for one in added:
            await until_state(database, one, "done")
    assert sum(batches) == 400
    assert len(batches) <= 10


async def test_noise_in_the_queue_is_logged_counted_and_does_no_harm(
    database: Database, bell: Bell, redis: Redis, kind: str, working: Any
) -> None:
    registry, queue = CollectorRegistry(), wire.queue(QueueClass.MEMORY)
    with capture_logs() as logs:
        async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, metrics=registry):
            for name, content in (
                ("a", b"\x80\x04garbage"),
                ("\N{BELL}", b'{"f": "rm", "a": [1, 2], "k": {}, "t": 1, "et": 1}'),
            ):
                await redis.set(job_key_prefix + name, content)
                await redis.zadd(queue, {name: 1})
            await redis.zadd(queue, {"a bell without a job": 1})
            (added,) = await send(database, bell, letter(kind))
            await until_state(database, added, "done")
    noise = {event["why"] for event in logs if event["event"] == "bell_not_understood"}
    assert noise == {"undecodable", "unknown function"}
    assert registry.get_sample_value("afterturn_bells_not_understood_total", {"queue_class": "memory"}) == 2
    assert await redis.zcard(queue) == 0


async def test_a_kind_that_this_release_does_not_know_waits_for_one_that_does(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, WATCHFUL):
        (strange,) = await send(database, bell, letter(f"{kind}-new"))
        (known,) = await send(database, bell, letter(kind))
        await until_state(database, known, "done")
    assert await state(database, strange.id) == "ready"


async def test_a_worker_says_that_it_lives_under_a_name_of_its_own(redis: Redis, kind: str, working: Any) -> None:
    async def alive() -> bool:
        return bool(await redis.keys("arq:afterturn:memory:*:*"))

    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}):
        await until(alive)
