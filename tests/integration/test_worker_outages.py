"""Stores go away and workers die: nothing is lost, nothing is done twice, and whoever lives goes on by himself."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
from structlog.testing import capture_logs

from config.settings import Settings
from jobs.bell import Bell
from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Nothing, Verdict
from models import work
from models.database import Database
from models.work import Added, Claim, Letter
from scheduler.reconciler import Hook, Reconciler, Rounds, run_scheduler
from scheduler.worker import Staffing, run_worker

LIMIT = timedelta(seconds=60)
STAFFING = Staffing(claim=timedelta(seconds=6), grace=timedelta(seconds=5), look_every=timedelta(seconds=0.5))


@asynccontextmanager
async def until_told(run: Callable[[asyncio.Event], Awaitable[None]]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.ensure_future(run(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(20):
            await task


def letter(kind: str) -> Letter:
    name = uuid4().hex
    return Letter(kind, QueueClass.MEMORY, 1, f"scope:{name}", name)


async def until(holds: Callable[[], Awaitable[bool]], within: float = 30) -> None:
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - what is waited for happens in a server
            await asyncio.sleep(0.02)


async def until_done(database: Database, *added: Added) -> None:
    async def done() -> bool:
        ids = [one.id for one in added]
        left = "SELECT count(*) FROM work WHERE id = ANY($1) AND state <> 'done'"
        try:
            return not await database.pool.fetchval(left, ids)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False  # it is being restarted

    await until(done)


async def send(database: Database, kind: str) -> Added:
    added = await work.add(database.pool, letter(kind))
    assert added is not None
    return added


async def nothing(_: Claim, __: None) -> Verdict:
    return Nothing()


async def test_without_redis_workers_go_on_and_hear_the_bell_again_after(
    database: Database, settings: Settings, servers: Any, bell: Bell, kind: str
) -> None:
    jobs = {kind: Job(QueueClass.MEMORY, nothing, LIMIT)}
    quiet = replace(STAFFING, look_every=timedelta(minutes=5))
    url = settings.stores.redis_url.get_secret_value()
    with capture_logs() as logs:
        async with until_told(lambda stop: run_worker(database, url, jobs, None, stop, quiet)):
            servers.valkey.kill()
            try:
                await until_done(database, *[await send(database, kind) for _ in range(3)])
            finally:
                servers.valkey.restart()

            async def heard() -> bool:
                return any(event["event"] == "store_came_back" for event in logs)

            await until(heard)
            rung = await send(database, kind)
            await until(lambda: bell.ring([rung]))
            await until_done(database, rung)
    assert {event["store"] for event in logs if event["event"] == "store_went_away"} == {"redis"}


async def test_a_restart_of_postgresql_is_waited_out_and_the_runs_survive_it(
    database: Database, settings: Settings, servers: Any, kind: str
) -> None:
    began, finish, runs = asyncio.Event(), asyncio.Event(), []

    async def across(claim: Claim, _: None) -> Verdict:
        runs.append(claim.id)
        began.set()
        await finish.wait()
        return Nothing()

    jobs = {kind: Job(QueueClass.MEMORY, across, LIMIT)}
    url = settings.stores.redis_url.get_secret_value()
    async with until_told(lambda stop: run_worker(database, url, jobs, None, stop, STAFFING)):
        before = await send(database, kind)
        await began.wait()
        await asyncio.to_thread(servers.data.kill)
        finish.set()  # its completion has to wait for the server
        await asyncio.to_thread(servers.data.restart)
        await until_done(database, before)
        await until_done(database, await send(database, kind))
    assert len(runs) == len(set(runs)) == 2


async def test_the_scheduler_waits_for_postgresql_before_it_takes_claims_for_dead(
    database: Database, bell: Bell, kind: str
) -> None:
    held = await _expired(database, kind)
    broken = Reconciler(database.pool, bell, {}, (), Rounds(claim=timedelta(seconds=60)))
    broken._trusts_claims_from = asyncio.get_running_loop().time() + 60  # as after an outage
    await broken.sweep()
    assert await database.pool.fetchval("SELECT state FROM work WHERE id = $1", held) == "claimed"
    await Reconciler(database.pool, bell, {}, (), Rounds()).sweep()
    assert await database.pool.fetchval("SELECT state FROM work WHERE id = $1", held) == "ready"


async def _expired(database: Database, kind: str) -> int:
    added = await send(database, kind)
    await database.pool.execute(
        "UPDATE work SET state = 'claimed', owner = 'dead', claimed_until = now() - interval '1 s' WHERE id = $1",
        added.id,
    )
    return added.id


async def test_the_scheduler_asks_its_hooks_rings_what_they_add_and_survives_one_that_fails(
    database: Database, bell: Bell, settings: Settings, kind: str
) -> None:
    asked = asyncio.Event()

    async def broken() -> list[Added]:
        raise ValueError

    async def found() -> list[Added]:
        added = await work.add_many(database.pool, [(Letter(kind, "memory", 1, kind, kind), None)])
        asked.set()
        return added

    hooks: tuple[Hook, ...] = (broken, found)
    jobs = {kind: Job(QueueClass.MEMORY, nothing, LIMIT)}
    quiet = replace(STAFFING, look_every=timedelta(minutes=5))
    url = settings.stores.redis_url.get_secret_value()
    with capture_logs() as logs:
        async with (
            until_told(lambda stop: run_worker(database, url, jobs, None, stop, quiet)),
            until_told(lambda stop: run_scheduler(database, bell, jobs, stop, hooks, Rounds())),
        ):
            await asked.wait()

            async def done() -> bool:
                return bool(
                    await database.pool.fetchval("SELECT true FROM work WHERE kind = $1 AND state = 'done'", kind)
                )

            await until(done)
    assert "hook_failed" in {event["event"] for event in logs}


async def test_the_scheduler_names_kinds_that_nobody_knows(database: Database, bell: Bell, kind: str) -> None:
    await send(database, kind)
    with capture_logs() as logs:
        await Reconciler(database.pool, bell, {}, (), Rounds()).sweep()
    assert kind in {event["kind"] for event in logs if event["event"] == "kind_not_known"}


_VICTIM = """
import asyncio, sys
from datetime import timedelta
from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Nothing
from models.database import connect
from scheduler.worker import Staffing, run_worker

url, redis_url, kind = sys.argv[1:]

async def hang(claim, resources):
    print("began", claim.id, flush=True)
    await asyncio.Event().wait()

async def main():
    async with connect(url) as database:
        jobs = {kind: Job(QueueClass.MEMORY, hang, timedelta(minutes=5))}
        await run_worker(database, redis_url, jobs, None, asyncio.Event(), Staffing(claim=timedelta(seconds=2)))

asyncio.run(main())
"""


async def test_the_work_of_a_killed_worker_runs_again_within_little_more_than_its_claim(
    database: Database, settings: Settings, bell: Bell, kind: str
) -> None:
    urls = (settings.stores.database_url.get_secret_value(), settings.stores.redis_url.get_secret_value())
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _VICTIM, *urls, kind), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert victim.stdout is not None
    added = await send(database, kind)
    async with asyncio.timeout(30):
        while not (await victim.stdout.readline()).startswith(b"began"):
            pass
    crashes: list[int] = []

    async def again(claim: Claim, _: None) -> Verdict:
        crashes.append(claim.crashes)
        return Nothing()

    jobs = {kind: Job(QueueClass.MEMORY, again, LIMIT)}
    async with (
        until_told(lambda stop: run_worker(database, urls[1], jobs, None, stop, STAFFING)),
        until_told(lambda stop: run_scheduler(database, bell, jobs, stop, (), Rounds(timedelta(seconds=0.3)))),
    ):
        victim.send_signal(signal.SIGKILL)
        await victim.wait()
        await until_done(database, added)
    assert crashes == [1]
