"""How fast are turns accepted? Over HTTP against the plain driver that inserts the same finished rows.

Each round first sends calls to the API, then inserts the very rows that came of them (sealed bytes and all) into a side
table with the same columns, indexes, constraints and row-level security, in the same batches, over as many connections as
there were clients. Both sides have their own process, and uvloop.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any
from uuid import uuid4

import asyncpg
import uvloop

from bench import load
from bench.load import Plan
from bench.report import remark, tell
from bench.service import OFFLINE, Service, run, service

_USERS, _MOST_APIS = 128, 4
_BEST_PEER = {1: 155, 8: 124}  # turns a second, one a call, by clients
_NOTHING_DUE = {"AFTERTURN_OBSERVER_THRESHOLD": "100000000", "AFTERTURN_OBSERVER_MAX_AGE": "1d"}

_COLUMNS = (
    *("space_id", "log_id", "seq", "conversation_id", "subject_id", "role", "sealed", "tokens", "said_at"),
    *("said_offset", "state", "reason", "message_digest", "task_digest"),
)
_SIDE_TABLE = """
DROP TABLE IF EXISTS bench_turns;
CREATE TABLE bench_turns (LIKE turns INCLUDING ALL);
ALTER TABLE bench_turns ADD FOREIGN KEY (log_id) REFERENCES logs (id) ON DELETE CASCADE,
    ADD FOREIGN KEY (conversation_id) REFERENCES conversations (id) ON DELETE CASCADE;
ALTER TABLE bench_turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE bench_turns FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON bench_turns USING (
    space_id::text = (SELECT current_setting('afterturn.space', true))
    OR (SELECT current_setting('afterturn.space', true)) = 'every')
"""
_INSERT = f"""
INSERT INTO bench_turns ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"${number}" for number in range(1, len(_COLUMNS) + 1))})
"""  # noqa: S608 - both parts are made of constants


@dataclass(frozen=True, slots=True)
class Round:
    """Turns a second of one round, both ways."""

    ours: float
    driver: float


async def measure(rounds: int, seconds: float) -> dict[str, float]:
    """Every figure, each the median of its rounds. With many clients by as many APIs as there are cores, too."""
    figures: dict[str, float] = {}
    with ProcessPoolExecutor(1, get_context("spawn")) as aside:
        async with service("api", "worker", "scheduler", **OFFLINE, **_NOTHING_DUE) as there:
            bench = Bench(there, await there.mint(), aside, seconds)
            await bench.send(8, 1, 2 * _USERS, "warm")  # everybody is known from here on
            for clients, turns in ((1, 1), (8, 1), (64, 1), (8, 10), (64, 10)):
                figures |= _figures(clients, turns, [await bench.round(clients, turns) for _ in range(rounds)])
            for _ in range(1, min(_MOST_APIS, os.cpu_count() or 1)):
                await there.start("api")
            for clients, turns in ((64, 1), (8, 10), (64, 10)):
                took = [await bench.round(clients, turns) for _ in range(rounds)]
                figures |= _figures(clients, turns, took, f"_{len(there.ports)}_apis")
    return figures


@dataclass(slots=True)
class Bench:
    """`seconds` is how long one side of a round is to take, about."""

    there: Service
    secret: str
    aside: ProcessPoolExecutor
    seconds: float

    async def round(self, clients: int, turns: int) -> Round:
        """The same rows both ways, one after the other."""
        label = uuid4().hex[:8]
        probe = await self.send(clients, turns, 20 * clients, f"{label}-probe")
        newest = await self._newest()
        driven = await self.send(clients, turns, int(probe.rate * self.seconds) + clients, label)
        driver = await self._aside(insert, self._database(), newest, turns, clients)
        taken = Round(driven.rate * turns, driver)
        remark(f"{clients} clients, {turns} turns a call: {taken.ours:.0f} turns/s, the driver {taken.driver:.0f}")
        return taken

    async def send(self, clients: int, turns: int, calls: int, label: str) -> load.Driven:
        plan = Plan(self.there.ports, self.secret, calls, clients, turns, _USERS, label)
        driven: load.Driven = await self._aside(load.drive, plan)
        return driven

    async def _newest(self) -> int:
        async with self.there.resources.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            return int(await connection.fetchval("SELECT max(id) FROM turns"))

    def _database(self) -> str:
        return self.there.settings.stores.database_url.get_secret_value()

    async def _aside(self, work: Any, *arguments: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.aside, work, *arguments)


def insert(url: str, after: int, batch: int, connections: int) -> float:
    """Inserts what came after that turn into the side table; answers rows a second."""
    return uvloop.run(_insert(url, after, batch, connections))


async def _insert(url: str, after: int, batch: int, connections: int) -> float:
    async with asyncpg.create_pool(url, min_size=connections, max_size=connections) as pool:
        batches = await _batches(pool, after, batch)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(connections):
                tasks.create_task(_one_client(pool, batches[number::connections]))
        return sum(map(len, batches)) / (time.perf_counter() - began)


async def _one_client(pool: asyncpg.Pool, batches: Sequence[Sequence[asyncpg.Record]]) -> None:
    async with pool.acquire() as connection:
        await connection.execute("SELECT set_config('afterturn.space', 'every', false)")
        statement = await connection.prepare(_INSERT)
        for rows in batches:
            if len(rows) == 1:
                await statement.fetch(*rows[0])
            else:
                await statement.executemany(rows)  # one transaction


async def _batches(pool: asyncpg.Pool, after: int, size: int) -> list[list[asyncpg.Record]]:
    """The finished rows, in the calls in which they came."""
    async with pool.acquire() as connection:
        await connection.execute(_SIDE_TABLE)
        async with connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            rows = await connection.fetch(
                f"SELECT {', '.join(_COLUMNS)} FROM turns WHERE id > $1 ORDER BY id",  # noqa: S608 - constants
                after,
            )
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def _figures(clients: int, turns: int, took: Sequence[Round], apis: str = "") -> dict[str, float]:
    name = f"{turns}_a_call_{clients}_clients{apis}"
    figures = {
        f"turns_per_second_{name}": round(statistics.median(one.ours for one in took)),
        f"driver_{name}": round(statistics.median(one.driver for one in took)),
        f"ratio_{name}": round(statistics.median(one.ours / one.driver for one in took), 3),
    }
    if turns == 1 and clients in _BEST_PEER and not apis:
        figures[f"best_peer_{name}"] = _BEST_PEER[clients]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.ingest", description=__doc__)
    parser.add_argument("--long", action="store_true", help="more and longer rounds")
    rounds, seconds = (7, 5.0) if parser.parse_args().long else (3, 1.5)

    async def bench() -> None:
        figures = await measure(rounds, seconds)
        tell("ingest", "ratio >= 0.5 with 10 turns a call; >= 1 with one turn a call at 64 clients", **figures)

    run(bench)


if __name__ == "__main__":
    main()
