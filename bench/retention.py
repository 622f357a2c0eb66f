"""What does sweeping in batches cost, and does ingest feel it? Against one big DELETE of the same rows, and against idle.

Spaces with the same rows past their term go in turn by a DELETE for each table and by the job; and one more by the job in a
worker, while a chat server's calls arrive at a steady pace, in the very logs that are swept.
"""

import argparse
import asyncio
import logging
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from statistics import median

import structlog

from bench.ingest_latency import OLD_ENOUGH, RATE, Client, compared
from bench.report import tell
from bench.service import OFFLINE, Service, run, service
from cli import spaces
from jobs import expire
from jobs.letters import expire_letter
from jobs.resources import furnished
from models import claim as claims
from models import retention, work
from models.claim import Rung, Terms
from models.database import driver
from models.dataset import see_expired
from models.work import Claim

_ROUNDS = 3  # of a DELETE and a sweep in turn: beside other work each comes out differently
_LOGS, _BURST, _TURNS_A_LINE = 500, 10, 5  # a call brings ten turns, and the next one is somebody else's
_TERM = timedelta(days=30)
_OLD = "now() - interval '40 days'"

_FILL = (
    "INSERT INTO subjects (id, space_id) SELECT md5($1::bigint || ' ' || n)::uuid, $1 FROM generate_series(1, $2::int) AS n",
    """
    INSERT INTO logs (space_id, subject_id, agent, context)
    SELECT space_id, id, 'bench', 'corporate' FROM subjects s
    WHERE space_id = $1 AND NOT EXISTS (SELECT FROM logs l WHERE l.subject_id = s.id)
    """,
    """
    INSERT INTO conversations (space_id, subject_id, digest, sealed_id, agent)
    SELECT $1, subject_id, '\\x00', decode(repeat('01', 60), 'hex'), 'bench' FROM logs WHERE space_id = $1
    """,
    f"""
    INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                       state, generation, message_digest, created_at)
    SELECT $1, l.id, l.last_seq + n, c.id, l.subject_id, 'user', decode('01' || repeat(md5(n::text), 12), 'hex'), 40,
           now(), 0, 'observed', 1, decode(md5(l.id || ' ' || n), 'hex'), {_OLD} + n / {_BURST} * interval '1 second'
    FROM logs l JOIN conversations c ON c.subject_id = l.subject_id AND c.digest = '\\x00'
    CROSS JOIN generate_series(1, $2::int) AS n WHERE l.space_id = $1 ORDER BY n / {_BURST}, l.id, n
    """,  # noqa: S608 - constants
    "UPDATE logs SET last_seq = last_seq + $2::int WHERE space_id = $1",
    f"""
    INSERT INTO observations (space_id, log_id, subject_id, generation, sealed, digest, kind, priority, tokens,
                              observed_at, observed_offset, evidence, sources, born_at)
    SELECT $1, id, subject_id, 1, decode('01' || repeat(md5(n::text), 8), 'hex'), decode(md5(n::text), 'hex'), 'fact',
           'low', 20, now(), 0, ARRAY[n::bigint], '{{}}', {_OLD} + n * interval '1 second'
    FROM logs CROSS JOIN generate_series(1, $2::int) AS n WHERE space_id = $1 ORDER BY n, id
    """,  # noqa: S608 - constants
)
_PLAIN = (
    "DELETE FROM observations WHERE space_id = $1 AND born_at <= now() - $2::interval",
    "DELETE FROM turns WHERE space_id = $1 AND created_at <= now() - $2::interval",
)


@dataclass(frozen=True, slots=True)
class _Ran:
    """One way of deleting."""

    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


async def measure(rows: int, seconds: float) -> dict[str, object]:
    """All of it in one deployment."""
    with ProcessPoolExecutor(1, get_context("spawn")) as aside:
        async with service("api", "worker", **OFFLINE, **OLD_ENOUGH) as there:
            client = Client(there, await there.mint(), aside)
            await client.chat("warm", 2)
            quiet = [await _space(there, f"bench-{number}", rows) for number in range(2 * _ROUNDS)]
            busy_space = await _space(there, spaces.DEFAULT, rows)
            await there.resources.database.pool.execute("VACUUM ANALYZE", timeout=1800)
            rounds = [
                (await _plainly(there, one), await _by_the_job(there, other))
                for one, other in zip(quiet[::2], quiet[1::2], strict=True)
            ]
            idle = await client.chat("idle", seconds)
            busy, lasted = await asyncio.gather(client.chat("busy", seconds), _by_the_worker(there, busy_space))
    during = busy.latencies[: int(lasted * RATE)]
    return {
        "rows": rounds[0][0].rows,
        "rounds": _ROUNDS,
        "rows_per_second_delete": round(median(plain.rate for plain, _ in rounds)),
        "rows_per_second_sweep": round(median(swept.rate for _, swept in rounds)),
        "ratio": round(median(swept.rate / plain.rate for plain, swept in rounds), 2),
        "rows_per_second_beside_calls": round(rounds[0][0].rows / lasted),
        **compared(idle.latencies, during),
    }


async def _space(there: Service, name: str, rows: int) -> int:
    """A space with so many rows past their term, in the order in which they would have come, in what logs it has."""
    space = (await spaces.find_or_make(there.resources.database, there.resources.keys, name)).id
    async with there.resources.database.begin(space) as tx:
        connection = await driver(tx)
        logs = _LOGS - await connection.fetchval("SELECT count(*) FROM logs WHERE space_id = $1", space)
        turns = rows * _TURNS_A_LINE // (_TURNS_A_LINE + 1) // _LOGS
        for statement, number in zip(_FILL, (logs, None, None, turns, turns, turns // _TURNS_A_LINE), strict=True):
            await connection.execute(statement, space, *([] if number is None else [number]), timeout=1800)
    return space


async def _plainly(there: Service, space: int) -> _Ran:
    began, rows = time.perf_counter(), 0
    for statement in _PLAIN:
        async with there.resources.database.begin(space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            rows += int((await connection.execute(statement, space, _TERM, timeout=1800)).split()[-1])
    return _Ran(rows, time.perf_counter() - began)


async def _due(there: Service, space: int) -> Rung:
    """Sets the terms, and makes the sweep due; no worker has been told of it."""
    async with there.resources.database.begin(space) as tx:
        connection = await driver(tx)
        await retention.change(connection, space, retention.Terms({"turns": _TERM, "observations": _TERM}))
        added = await work.add(connection, expire_letter(space))
    assert added is not None
    return Rung(added.id, added.epoch)


async def _by_the_job(there: Service, space: int) -> _Ran:
    before = await _left(there, space)
    async with furnished(there.resources) as workshop:
        claim = await _claimed(there, await _due(there, space))
        began = time.perf_counter()
        await expire.expire(claim, workshop)
        took = time.perf_counter() - began
    return _Ran(before - await _left(there, space), took)


async def _claimed(there: Service, rung: Rung) -> Claim:
    terms = Terms("bench", "housekeeping", ("expire",), timedelta(hours=1), 100)
    async with there.resources.database.pool.acquire() as connection:
        (claim,) = await claims.rung(connection, terms, [rung], 1)
    return claim


async def _by_the_worker(there: Service, space: int) -> float:
    """How long the worker took over it."""
    rung, pool = await _due(there, space), there.resources.database.pool
    query = "SELECT state FROM work WHERE id = $1"
    while await pool.fetchval(query, rung.id) == "ready":  # noqa: ASYNC110 - a table of other processes
        await asyncio.sleep(0.01)
    began = time.perf_counter()
    while await pool.fetchval(query, rung.id) == "claimed":  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)
    took = time.perf_counter() - began
    assert not await _left(there, space), "the sweep left something"
    return took


async def _left(there: Service, space: int) -> int:
    """Rows past their term."""
    async with there.resources.database.begin(space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        query = (
            "SELECT (SELECT count(*) FROM turns WHERE space_id = $1 AND created_at <= now() - $2::interval)"
            " + (SELECT count(*) FROM observations WHERE space_id = $1 AND born_at <= now() - $2::interval)"
        )
        return int(await connection.fetchval(query, space, _TERM, timeout=600))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.retention", description=__doc__)
    parser.add_argument("--long", action="store_true", help="a million rows a space, and a longer look")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))  # the job runs in here
    rows, seconds = (1_000_000, 60.0) if parser.parse_args().long else (150_000, 8.0)

    async def bench() -> None:
        tell("retention", "ratio >= 0.3, ratio_p99 <= 2", **await measure(rows, seconds))

    run(bench)


if __name__ == "__main__":
    main()
