"""No-op jobs through a durable peer: `python bench/peers/no_ops.py PEER DATABASE_URL JOBS`, by an interpreter that has it.

Each peer is set up as its own documentation shows, with 32 jobs at once where it has such a number.
"""
# ruff: noqa: PLC0415 - each interpreter has one of the peers
# mypy: disable-error-code="import-not-found, untyped-decorator, no-any-return"

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from clock import Clock, percentiles

_PROBES = 100
_AT_ONCE = 32

Figures = dict[str, float]


async def pgqueuer(url: str, rows: int) -> Figures:
    import asyncpg
    from pgqueuer import AsyncpgDriver, PgQueuer, Queries

    connection, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
    driver, clock = AsyncpgDriver(connection), Clock()
    queries = Queries(driver)
    if await queries.schema_is_installed():
        await queries.uninstall()
    await queries.install()

    async def send(many: int) -> None:
        await queries.enqueue(["noop"] * many, [None] * many, [0] * many)

    async def empty() -> bool:
        return not await watcher.fetchval("SELECT count(*) FROM pgqueuer")

    def working(batch: int) -> tuple["asyncio.Task[None]", Callable[[], None]]:
        peer = PgQueuer(driver)

        @peer.entrypoint("noop")
        async def noop(_: Any) -> None:
            clock.ran()

        task = asyncio.create_task(peer.run(batch_size=batch, dequeue_timeout=timedelta(seconds=30)))
        return task, peer.shutdown.set

    figures: Figures = {}
    for name, batch in (("single", 10), ("bulk", 32)):
        await send(rows)
        clock.expect(rows)
        task, stop = working(batch)
        figures[name] = await _drained(clock, rows, empty)
        if name == "bulk":
            figures |= await _latency(clock, lambda: send(1))
        stop()
        await task
    return figures


async def procrastinate(url: str, rows: int) -> Figures:
    from procrastinate import App, PsycopgConnector

    app, clock = App(connector=PsycopgConnector(conninfo=url, max_size=20)), Clock()

    @app.task(name="noop")
    async def noop() -> None:
        clock.ran()

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()

        async def empty() -> bool:
            counted = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
            return not (await app.connector.execute_query_one_async(counted))["n"]

        await noop.batch_defer_async(*({} for _ in range(rows)))
        clock.expect(rows)
        worker = asyncio.create_task(app.run_worker_async(concurrency=_AT_ONCE, install_signal_handlers=False))
        single = await _drained(clock, rows, empty)
        figures = {"single": single, **await _latency(clock, noop.defer_async)}
        worker.cancel()
        await asyncio.wait([worker])
    return figures


async def saq(url: str, rows: int) -> Figures:
    from saq import Worker
    from saq.queue import Queue

    queue, clock = Queue.from_url(url), Clock()
    await queue.connect()

    async def noop(_: Any) -> None:
        clock.ran()

    async def empty() -> bool:
        return not await queue.count("incomplete")

    for _ in range(rows):
        await queue.enqueue("noop")
    clock.expect(rows)
    worker = Worker(queue, functions=[("noop", noop)], concurrency=_AT_ONCE)
    task = asyncio.create_task(worker.start())
    single = await _drained(clock, rows, empty)
    figures = {"single": single, **await _latency(clock, lambda: queue.enqueue("noop"))}
    task.cancel()
    await asyncio.wait([task])
    return figures


async def _drained(clock: Clock, rows: int, empty: Callable[[], Awaitable[bool]]) -> float:
    await clock.all_ran.wait()
    while not await empty():  # noqa: ASYNC110 - it happens in a server
        await asyncio.sleep(0.005)
    return round(rows / clock.since_first())


async def _latency(clock: Clock, send: Callable[[], Awaitable[Any]]) -> Figures:
    took = []
    await asyncio.sleep(0.5)
    for _ in range(_PROBES):
        clock.expect(1)
        began = time.perf_counter()
        await send()
        await clock.all_ran.wait()
        took.append(clock.first - began)
        await asyncio.sleep(0.03)
    p50, p99 = percentiles(took)
    return {"p50_ms": p50, "p99_ms": p99}


PEERS = {"pgqueuer": pgqueuer, "procrastinate": procrastinate, "saq": saq}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))))
