"""Do model calls overlap? Jobs a second of one worker on one core, against concurrency ÷ latency.

python -m bench.overlap [--at-once 200] [--latency 1.0]
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import structlog
import uvloop

from gateways import embedded_postgres, embedded_valkey
from jobs.bell import Bell
from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Verdict
from models import work
from models.database import Database, connect, driver
from models.work import Claim, Letter, Work
from scheduler.worker import Staffing, run_worker

_WAVES = 12  # times that every slot is filled


def main() -> None:
    """Prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        postgres = embedded_postgres.start(Path(folder) / "data")
        valkey = embedded_valkey.start(Path(folder) / "valkey")
        try:
            _keep_to_one_core()
            print(json.dumps(uvloop.run(_measure(postgres.url, valkey.url, options.at_once, options.latency))))
        finally:
            valkey.stop()
            postgres.stop()


def _keep_to_one_core() -> None:
    with contextlib.suppress(AttributeError, OSError):  # where a system has no such call, one event loop is one core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


async def _measure(url: str, redis_url: str, at_once: int, latency: float) -> dict[str, object]:
    async with connect(url) as database:
        async with database.engine.begin() as connection:
            await connection.run_sync(Work.metadata.tables["work"].create)
        jobs = at_once * _WAVES
        took = await _run(database, redis_url, at_once, latency, jobs)
    ideal = at_once / latency
    return {
        "bench": "overlap",
        "at_once": at_once,
        "jobs_per_s": round(jobs / took, 1),
        "ideal": ideal,
        "ratio": round(jobs / took / ideal, 3),
    }


async def _run(database: Database, redis_url: str, at_once: int, latency: float, jobs: int) -> float:
    """Seconds from the first run to the last commit. Each run reads, waits as for a model, and writes, as a job does."""
    first, left, done = 0.0, jobs, asyncio.Event()

    async def ask(claim: Claim, _: None) -> Verdict:
        nonlocal first, left
        first = first or time.perf_counter()
        await asyncio.sleep(latency)
        async with database.begin(claim.space_id) as tx:
            await work.complete(await driver(tx), claim)
        left -= 1
        if not left:
            done.set()
        return Done()

    letters = [Letter("ask", QueueClass.MEMORY, number % 50, f"s:{number}", str(number)) for number in range(jobs)]
    added = await work.add_many(database.pool, [(letter, None) for letter in letters])
    bell, stop = Bell.connect(redis_url), asyncio.Event()
    await bell.ring(added)
    staffing = Staffing({QueueClass.MEMORY: at_once}, per_space=at_once)
    registry = {"ask": Job(QueueClass.MEMORY, ask, timedelta(minutes=1))}
    worker = asyncio.create_task(run_worker(database, redis_url, registry, None, stop, staffing))
    await done.wait()
    took = time.perf_counter() - first
    stop.set()
    await worker
    await bell.close()
    return took


if __name__ == "__main__":
    main()
