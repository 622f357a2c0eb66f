"""Are answers still quick while workers work? The 99th percentile beside what they do at full load, against idle.

Calls come at a steady pace in both phases, and each is timed from when it was due, so that a stall is felt by every
call that it holds up.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from bench import erasure, export
from bench.load import Driven, Plan, drive
from bench.report import percentile, remark, tell
from bench.service import OFFLINE, Service, run, service, unfinished
from cli import spaces

Begin = Callable[[], Awaitable[object]]

_AGENT = "bench"
RATE = 100.0  # calls a second, one turn each
_CHATTING = 64  # people whose calls are timed
_TURNS_WAITING, _A_CALL = 250, 50  # of each log that will be observed: below the threshold until somebody asks
_MORE = 10  # rows to erase or export for each turn that would be observed: they go as much faster
OLD_ENOUGH = {"AFTERTURN_OBSERVER_MAX_AGE": "1d"}


async def measure(seconds: float, size: int, beside: str) -> dict[str, object]:
    """Both phases; the second counts the calls that were due while there was work."""
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as aside,
        TemporaryDirectory(prefix="afterturn-packages-") as folder,
    ):
        packages = {"AFTERTURN_PACKAGES_URL": Path(folder).as_uri()}
        async with service("api", "worker", "scheduler", **OFFLINE, **OLD_ENOUGH, **packages) as there:
            client = Client(there, await there.mint(), aside)
            begin = await _WORK[beside](there, client, size)
            await client.chat("warm", 2)
            idle = await client.chat("idle", seconds)
            remark(f"idle: p99 {1000 * percentile(idle.latencies, 0.99):.1f} ms")
            await begin()
            busy, lasted = await asyncio.gather(client.chat("busy", seconds), _until_done(there, seconds))
            observed = await _observed(there)
    if beside == "observe" and not observed:
        raise RuntimeError("the workers observed nothing: its latencies would be those of an idle service")
    during = busy.latencies[: int(lasted * RATE)]
    figures = compared(idle.latencies, during) | {"beside": beside, "busy_seconds": round(lasted, 1)}
    return figures | ({"observed_turns_per_second": round(observed / lasted)} if beside == "observe" else {})


async def _to_observe(there: Service, client: "Client", logs: int) -> Begin:  # noqa: ARG001 - as the others
    await client.load(logs)
    return lambda: client.flush(logs)


async def _to_erase(there: Service, client: "Client", size: int) -> Begin:  # noqa: ARG001 - as the others
    space = (await spaces.find_or_make(there.resources.database, there.resources.keys, spaces.DEFAULT)).id
    subject = await erasure.person(there, space, size * _TURNS_WAITING * _MORE)
    return lambda: erasure.due(there, space, subject)


async def _to_export(there: Service, client: "Client", size: int) -> Begin:  # noqa: ARG001 - as the others
    space, subject = await export.fill(there, size * _TURNS_WAITING * _MORE)
    return lambda: export.asked_for(there, space, subject)


_WORK: Mapping[str, Callable[[Service, "Client", int], Awaitable[Begin]]] = {
    "observe": _to_observe,
    "erase": _to_erase,
    "export": _to_export,
}


class Client:
    """A chat server."""

    def __init__(self, there: Service, secret: str, aside: ProcessPoolExecutor) -> None:
        self._there, self._secret, self._aside = there, secret, aside

    async def load(self, logs: int) -> None:
        """Fills logs with turns that wait."""
        ports = self._there.ports
        await self._drive(
            Plan(ports, self._secret, logs * _TURNS_WAITING // _A_CALL, 16, _A_CALL, logs, "old", "waiting")
        )

    async def chat(self, label: str, seconds: float) -> Driven:
        """Calls at the steady pace."""
        ports, calls = self._there.ports, int(seconds * RATE)
        return await self._drive(Plan(ports, self._secret, calls, 16, 1, _CHATTING, label, rate=RATE))

    async def _drive(self, plan: Plan) -> Driven:
        return await asyncio.get_running_loop().run_in_executor(self._aside, drive, plan)

    async def flush(self, logs: int) -> None:
        """Has every waiting log observed now."""
        headers = {"Authorization": f"Bearer {self._secret}"}
        async with httpx.AsyncClient(base_url=self._there.url, headers=headers, trust_env=False) as http:
            for user in range(logs):
                who = {"X-Canonical-User": f"waiting-{user}"}
                (await http.post("/v1/observations/flush", json={"agent": _AGENT}, headers=who)).raise_for_status()


async def _until_done(there: Service, at_most: float) -> float:
    clock = asyncio.get_running_loop()
    began = clock.time()
    while clock.time() - began < at_most and await unfinished(there):  # noqa: ASYNC110 - a table of other processes
        await asyncio.sleep(0.1)
    return clock.time() - began


async def _observed(there: Service) -> int:
    async with there.resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        return int(await connection.fetchval("SELECT count(*) FROM turns WHERE state = 'observed'"))


def compared(idle: list[float], busy: list[float]) -> dict[str, object]:
    """What a bench says of the latencies, in seconds, of calls that came while there was work, against idle ones."""
    before, during = percentile(idle, 0.99), percentile(busy, 0.99)
    return {
        "p99_ms_idle": round(1000 * before, 2),
        "p99_ms_busy": round(1000 * during, 2),
        "ratio_p99": round(during / before, 2),
        "p50_ms_idle": round(1000 * percentile(idle, 0.5), 2),
        "p50_ms_busy": round(1000 * percentile(busy, 0.5), 2),
        "calls": len(busy),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.ingest_latency", description=__doc__)
    parser.add_argument("--long", action="store_true", help="a longer look")
    parser.add_argument("--beside", choices=_WORK, default="observe", help="what the workers do meanwhile")
    asked = parser.parse_args()
    seconds, size = (30.0, 400) if asked.long else (10.0, 80)

    async def bench() -> None:
        tell("ingest_latency", "ratio_p99 <= 2", **await measure(seconds, size, asked.beside))

    run(bench)


if __name__ == "__main__":
    main()
