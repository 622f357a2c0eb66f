"""How soon is a killed worker's work running again? From kill -9 to the next run, over the claim's length; lost, twice.

    python -m bench.recovery [--claim 15] [--kills 3]

Each kill hits a worker with many runs under way, while another worker and a scheduler live. Every run appends a row to
a table of effects in the transaction that completes it: a missing row is lost work, a second one is work done twice.
"""

import argparse
import asyncio
import json
import logging
import signal
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import structlog

from gateways import embedded_postgres, embedded_valkey
from jobs.bell import Bell
from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Verdict
from models import work
from models.database import Database, connect
from models.work import Claim, Letter, Work
from scheduler.reconciler import Rounds, run_scheduler
from scheduler.worker import Staffing, run_worker

_HELD = 16  # runs that a killed worker has under way
_PASSING = 2.0  # seconds that a run takes in the end
# What prunes finished work asks which spaces keep it for a time of their own: there are no spaces here.
_NO_TERMS = "CREATE FUNCTION spaces_with_term(text) RETURNS bigint[] LANGUAGE sql AS 'SELECT ARRAY[]::bigint[]'"


def main() -> None:
    """Prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claim", type=float, default=15.0, help="seconds")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--victim", nargs=2, metavar=("DATABASE", "REDIS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    if options.victim:
        url, redis_url = options.victim
        asyncio.run(_be_the_victim(url, redis_url, options.claim))
        return
    with tempfile.TemporaryDirectory() as folder:
        postgres = embedded_postgres.start(Path(folder) / "data")
        valkey = embedded_valkey.start(Path(folder) / "valkey")
        try:
            print(json.dumps(asyncio.run(_measure(postgres.url, valkey.url, options.claim, options.kills))))
        finally:
            valkey.stop()
            postgres.stop()


async def _measure(url: str, redis_url: str, claim: float, kills: int) -> dict[str, object]:
    bell, stop, reruns = Bell.connect(redis_url), asyncio.Event(), asyncio.Queue[float]()
    async with connect(url) as database:
        await _tables(database)

        async def again(held: Claim, _: None) -> Verdict:
            reruns.put_nowait(time.monotonic())
            return await _finish(held, database)

        jobs = {"effect": Job(QueueClass.MEMORY, again, timedelta(minutes=5))}
        staffing = _staffing(claim, slots=_HELD)
        rounds = Rounds(claim=timedelta(seconds=claim))
        took: list[float] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(run_scheduler(database, bell, jobs, stop, (), rounds))
            for number in range(kills):
                killed = await _kill_one(database, (url, redis_url), claim, number)
                rescue = asyncio.Event()
                worker = group.create_task(run_worker(database, redis_url, jobs, None, rescue, staffing))
                took += [await reruns.get() - killed for _ in range(_HELD)]
                await _all_done(database)
                rescue.set()
                await worker
            stop.set()
        counts = await _counts(database)
    await bell.close()
    return {
        "bench": "recovery",
        "claim_s": claim,
        "median_s": round(sorted(took)[len(took) // 2], 2),
        "slowest_s": round(max(took), 2),
        "ratio": round(max(took) / claim, 2),
        **counts,
    }


async def _kill_one(database: Database, urls: tuple[str, str], claim: float, number: int) -> float:
    """Lets a worker of its own begin runs, kills it, and answers when that was."""
    letters = [Letter("effect", QueueClass.MEMORY, 1, f"s:{number}:{n}", f"{number}:{n}") for n in range(_HELD)]
    command = [sys.executable, "-m", "bench.recovery", "--claim", str(claim), "--victim", *urls]
    victim = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert victim.stdout is not None
    await work.add_many(database.pool, [(letter, None) for letter in letters])
    for _ in range(_HELD):
        assert await victim.stdout.readline() == b"began\n"
    await asyncio.sleep(claim / 5)  # somewhere between two beats
    victim.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    await victim.wait()
    return killed


async def _be_the_victim(url: str, redis_url: str, claim: float) -> None:
    async def hang(_: Claim, __: None) -> Verdict:
        print("began", flush=True)
        await asyncio.Event().wait()
        return Done()

    async with connect(url) as database:
        jobs = {"effect": Job(QueueClass.MEMORY, hang, timedelta(minutes=5))}
        await run_worker(database, redis_url, jobs, None, asyncio.Event(), _staffing(claim, slots=_HELD))


def _staffing(claim: float, slots: int) -> Staffing:
    return Staffing({QueueClass.MEMORY: slots}, per_space=1000, claim=timedelta(seconds=claim))


async def _finish(held: Claim, database: Database) -> Verdict:
    await asyncio.sleep(_PASSING)
    async with database.pool.acquire() as connection, connection.transaction():
        await connection.execute("INSERT INTO effects VALUES ($1)", held.id)
        await work.complete(connection, held)
    return Done()


async def _tables(database: Database) -> None:
    async with database.engine.begin() as connection:
        await connection.run_sync(Work.metadata.tables["work"].create)
    await database.pool.execute(_NO_TERMS)
    await database.pool.execute("CREATE TABLE effects (work_id bigint)")


async def _all_done(database: Database) -> None:
    left = "SELECT count(*) FROM work WHERE state <> 'done'"
    while await database.pool.fetchval(left):  # noqa: ASYNC110 - it happens in a server
        await asyncio.sleep(0.05)


async def _counts(database: Database) -> dict[str, int]:
    row = await database.pool.fetchrow(
        "SELECT count(*) AS work, (SELECT count(DISTINCT work_id) FROM effects) AS once, (SELECT count(*) FROM effects) AS rows"
        " FROM work"
    )
    return {"work": row["work"], "lost": row["work"] - row["once"], "twice": row["rows"] - row["once"]}


if __name__ == "__main__":
    main()
