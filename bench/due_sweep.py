"""Does a sweep stay cheap as the deployment grows? The scheduler's sweep over many waiting logs, against a thousand.

Every log has pending turns and its row of work, which is due tomorrow; of a hundred it is due now. Each sweep finds
those hundred, rings for them, and looks after the other things that a sweep looks after.
"""

import argparse
import statistics
import time
from uuid import uuid4

from asyncpg import Connection, Pool

from bench.report import remark, tell
from bench.service import OFFLINE, Service, run, service
from cli import spaces
from jobs.resources import rhythm
from scheduler import connections
from scheduler.__main__ import JOBS
from scheduler.attention import Attention
from scheduler.reconciler import Reconciler, Rounds

_FEW, _DUE = 1_000, 100
_AGENTS = 100  # logs of one person

_PEOPLE = "INSERT INTO subjects (id, space_id) SELECT md5($2 || n)::uuid, $1 FROM generate_series(1, $3::int) AS n"
_LOGS = """
INSERT INTO logs (space_id, subject_id, agent, context, last_seq, pending_turns, pending_tokens, oldest_pending_at)
SELECT $1, md5($2 || p)::uuid, 'agent-' || a, 'corporate', 3, 3, 75, now()
FROM generate_series(1, $3::int) AS p, generate_series(1, $4::int) AS a
"""
_WORK = """
INSERT INTO work (kind, queue_class, space_id, scope, dedup, payload, run_at)
SELECT 'observe', 'memory', space_id, 'log:' || id, 'log:' || id, jsonb_build_object('log_id', id), now() + interval '1 day'
FROM logs WHERE NOT EXISTS (SELECT FROM work w WHERE w.kind = 'observe' AND w.dedup = 'log:' || logs.id AND w.state = 'ready')
"""
_MAKE_DUE = """
UPDATE work SET run_at = now() - interval '1 minute', rung_at = NULL
WHERE id IN (SELECT id FROM work WHERE state = 'ready' ORDER BY id LIMIT $1)
"""


async def measure(many: int, sweeps: int) -> dict[str, object]:
    """The median sweep at both sizes, in one deployment that grows in between."""
    async with service(**OFFLINE) as there, connections.opened(there.resources.database, 2) as pool:
        space = (await spaces.find_or_make(there.resources.database, there.resources.keys, spaces.DEFAULT)).id
        few = await _at(there, pool, space, _FEW, sweeps)
        began = time.monotonic()
        large = await _at(there, pool, space, many - _FEW, sweeps)
        remark(f"{many} logs and their sweeps took {time.monotonic() - began:.0f} s")
    return {
        "logs": many,
        "due": _DUE,
        "ms_few": round(1000 * few, 2),
        "ms_many": round(1000 * large, 2),
        "ratio": round(large / few, 2),
    }


async def _at(there: Service, pool: Pool, space: int, more: int, sweeps: int) -> float:
    async with there.resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        await _add(connection, space, more)
    await there.resources.database.pool.execute("VACUUM ANALYZE logs")
    await there.resources.database.pool.execute("VACUUM ANALYZE work")
    attention = Attention(there.resources.database, rhythm(there.resources.settings))
    sweeper = Reconciler(pool, there.resources.bell, JOBS, (attention.attend,), Rounds())
    return statistics.median([await _sweep(there, sweeper) for _ in range(sweeps)])


async def _add(connection: Connection, space: int, logs: int) -> None:
    people, salt = -(-logs // _AGENTS), uuid4().hex
    await connection.execute(_PEOPLE, space, salt, people)
    await connection.execute(_LOGS, space, salt, people, _AGENTS)
    await connection.execute(_WORK)


async def _sweep(there: Service, sweeper: Reconciler) -> float:
    await there.resources.database.pool.execute(_MAKE_DUE, _DUE)
    began = time.perf_counter()
    await sweeper.sweep()
    took = time.perf_counter() - began
    rung = await there.resources.database.pool.fetchval("SELECT count(*) FROM work WHERE rung_at IS NOT NULL")
    assert rung == _DUE, f"{rung} rows were rung"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.due_sweep", description=__doc__)
    parser.add_argument("--long", action="store_true", help="a million logs, and more sweeps")
    many, sweeps = (1_000_000, 31) if parser.parse_args().long else (200_000, 15)

    async def bench() -> None:
        tell("due_sweep", "ratio <= 3", **await measure(many, sweeps))

    run(bench)


if __name__ == "__main__":
    main()
