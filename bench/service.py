"""A deployment of a bench's own: embedded servers in a temporary folder, and the processes that it asks for."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from cli import embedded, keys, spaces
from cli.servers import environment
from config.settings import BUILTIN, Settings, load
from jobs.resources import Resources, opened
from migrations.run import migrate

ROLES: Mapping[str, tuple[str, ...]] = {
    "api": ("api",),
    "worker": ("scheduler", "worker"),
    "scheduler": ("scheduler", "scheduler"),
}
OFFLINE = {"AFTERTURN_OBSERVATIONAL_MEMORY": "1", "AFTERTURN_MEMORY_WORKER_MODEL": BUILTIN}
_READY_WITHIN = 60.0  # seconds
_GRACE = 30.0  # seconds that a process may take to end


@dataclass(slots=True)
class Service:
    """A deployment while it runs. `resources` reach its stores from the bench's own process."""

    settings: Settings
    resources: Resources
    ports: list[int] = field(default_factory=list)
    processes: list[tuple[str, asyncio.subprocess.Process]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where the first API answers."""
        return f"http://127.0.0.1:{self.ports[0]}"

    async def start(self, role: str, **overrides: str) -> None:
        """Starts one of ROLES with the service's settings, some of them otherwise. An API gets a port of its own."""
        port = _free_port()
        base = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *ROLES[role]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sys.stderr,  # standard output is for the bench's line
            env=base | environment(self.settings) | {"AFTERTURN_PORT": str(port)} | overrides,
        )
        self.processes.append((role, process))
        if role == "api":
            await _ready(process, port)
            self.ports.append(port)

    async def stop(self, role: str) -> None:
        """Ends the newest process of a role as an operator does, and waits for it."""
        place = max(place for place, (name, _) in enumerate(self.processes) if name == role)
        process = self.processes.pop(place)[1]
        if process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(_GRACE):
                await process.wait()
        except TimeoutError:
            process.kill()

    async def mint(self) -> str:
        """The secret of a chat server's key, which speaks for whomever its headers name."""
        wanted = keys.Wanted(spaces.DEFAULT, "bench", "turns:write,memory:read", admin=True, allow_impersonation=True)
        return (await keys.mint(self.resources, wanted)).secret


@asynccontextmanager
async def service(*roles: str, **variables: str) -> AsyncIterator[Service]:
    """Runs the roles as long as the block lasts. `variables` are settings, by their AFTERTURN_ names."""
    os.environ.update({"AFTERTURN_LOG_LEVEL": "warning", **variables})
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afterturn-bench-")))
        stack.enter_context(embedded.taken(folder / "service"))
        servers = await stack.enter_async_context(embedded.started(folder / "service"))
        settings = load(
            database_url=servers.data.url,
            redis_url=servers.valkey.url,
            keys_url=servers.keys.url,
            master_key_file=servers.master_key_file,
        )
        await migrate(servers.data.url, servers.keys.url)
        resources = await stack.enter_async_context(opened(settings))
        there = Service(settings, resources)
        stack.push_async_callback(_end, there)
        for role in roles:
            await there.start(role)
        yield there


def run(bench: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a bench; SIGTERM ends it, and what it started, in order."""

    async def until_told() -> None:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await bench()

    asyncio.run(until_told())


async def settled(service: Service, within: float) -> float:
    """Waits until no turn is pending and no work unfinished; answers the seconds it took."""
    began = time.monotonic()
    async with asyncio.timeout(within):
        while await unfinished(service):  # noqa: ASYNC110 - a table of other processes
            await asyncio.sleep(0.1)
    return time.monotonic() - began


async def unfinished(service: Service) -> int:
    """Work that is due or runs now."""
    rows = await service.resources.database.pool.fetchval(
        "SELECT count(*) FROM work WHERE state = 'claimed' OR state = 'ready' AND run_at <= now()"
    )
    return int(rows)


async def _end(there: Service) -> None:
    for role, _ in reversed(list(there.processes)):
        await there.stop(role)


async def _ready(api: asyncio.subprocess.Process, port: int) -> None:
    async with asyncio.timeout(_READY_WITHIN), httpx.AsyncClient(trust_env=False) as client:
        while not await _answers(client, port):
            if api.returncode is not None:
                raise RuntimeError("the API does not start; its own messages say why")
            await asyncio.sleep(0.05)


async def _answers(client: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/readyz")).is_success
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
