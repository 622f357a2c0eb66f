"""A whole deployment in one data folder: embedded servers, schema, a first space, and the three processes."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from cli import embedded, spaces
from cli.children import Child
from cli.embedded import Embedded
from cli.failure import Failed
from cli.output import remark
from cli.servers import Servers, announced, environment, read
from config.settings import Settings, load
from intake import erasure
from jobs.resources import opened
from migrations.run import migrate

_READY_WITHIN = 90.0  # seconds; a first start on a slow disk takes its time
_GRACE = 10  # seconds for the workers of a laptop, unless the environment says otherwise
_ROLES = {"api": ("api",), "worker": ("scheduler", "worker"), "scheduler": ("scheduler", "scheduler")}


@dataclass(frozen=True, slots=True)
class Running:
    """A deployment that is ready. `keepers` end only when something is wrong with `up` itself."""

    servers: Servers
    settings: Settings
    keepers: "list[asyncio.Task[None]]"

    async def stays(self) -> None:
        """Waits as long as the deployment lasts: until cancelled."""
        ended, _ = await asyncio.wait(self.keepers, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*ended)  # raises what ended it


@asynccontextmanager
async def running(folder: Path, port: int | None, log: IO[bytes] | int) -> AsyncIterator[Running]:
    """Runs everything as long as the block lasts, then ends it in order: processes, Valkey, PostgreSQL.

    `folder` is absolute; `port` None takes the environment's, 0 a free one; `log` is where the processes write. Raises
    Failed or WrongSetting with one line.
    """
    expected = _expected(folder)
    async with AsyncExitStack() as stack:
        stack.enter_context(embedded.taken(folder))
        # The api of an `up` that was killed may take a moment to notice.
        port = await _free_port(expected, port, patience=10 if read(folder) else 0)
        servers = await stack.enter_async_context(embedded.started(folder))
        settings = _settings(servers, expected, folder, port)
        await _prepare(settings)
        there = _described(servers, settings)
        stack.enter_context(announced(folder, there))
        children = _children(settings, log)
        keepers = [asyncio.create_task(child.keep_alive(), name=child.role) for child in children]
        keepers += [
            asyncio.create_task(embedded.keep_alive(name, server), name=name)
            for name, server in servers.named().items()
        ]
        stack.push_async_callback(_end, keepers)
        await _ready(there.url, children[0])
        yield Running(there, settings, keepers)


def _expected(folder: Path) -> Settings:
    """The settings as they will be: a wrong one is told before anything is started."""
    return load(
        database_url="postgresql:///", redis_url="unix:///", keys_url="postgresql:///", master_key_file=folder / "none"
    )


def _settings(servers: Embedded, expected: Settings, folder: Path, port: int) -> Settings:
    os.environ["AFTERTURN_PORT"] = str(port)
    if expected.packages.place() is None:
        os.environ["AFTERTURN_PACKAGES_URL"] = (folder / "packages").as_uri()
    if "worker_grace" not in expected.workers.model_fields_set:
        os.environ["AFTERTURN_WORKER_GRACE"] = f"{_GRACE}s"
    return load(
        database_url=servers.data.url,
        redis_url=servers.valkey.url,
        keys_url=servers.keys.url,
        master_key_file=servers.master_key_file,
        master_key_previous_file=servers.former_key_file,
    )


def _described(servers: Embedded, settings: Settings) -> Servers:
    return Servers(
        url=_url(settings),
        database_url=servers.data.url,
        redis_url=servers.valkey.url,
        keys_url=servers.keys.url,
        master_key_file=str(servers.master_key_file),
        former_key_file=str(servers.former_key_file) if servers.former_key_file else None,
        environment=environment(settings, stores=False),
    )


def _url(settings: Settings) -> str:
    host = settings.http.host
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - where it listens on all, this is one
    return f"http://[{host}]:{settings.http.port}" if ":" in host else f"http://{host}:{settings.http.port}"


async def _prepare(settings: Settings) -> None:
    stores = settings.stores
    await migrate(stores.database_url.get_secret_value(), stores.keys_url.get_secret_value())
    async with opened(settings) as resources:
        # Without `up` the stores do not run, so nobody else could.
        if replayed := await erasure.replay(resources):
            remark(
                f"The data were from before {replayed} erasures: they are erased again, and the workers delete the rows."
            )
        await spaces.find_or_make(resources.database, resources.keys, spaces.DEFAULT)


def _children(settings: Settings, log: IO[bytes] | int) -> list[Child]:
    handed = {
        **{name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")},
        **environment(settings),
        # A folder `models` or `config` where `up` is typed must not pass for ours.
        "PYTHONSAFEPATH": "1",
    }
    grace = settings.workers.worker_grace.total_seconds() + 2
    return [Child(role, module, handed, log, grace) for role, module in _ROLES.items()]


async def _ready(url: str, api: Child) -> None:
    looping = asyncio.create_task(api.looping.wait())
    try:
        async with asyncio.timeout(_READY_WITHIN), httpx.AsyncClient(trust_env=False) as client:
            while not await _answers(client, url):
                if looping.done():
                    raise Failed(f"the api does not start (exit code {api.code}); its own messages say why")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Failed(f"the api was not ready within {_READY_WITHIN:g} s; its own messages say why") from None
    finally:
        looping.cancel()


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/readyz")).is_success
    except httpx.TransportError:
        return False


async def _end(keepers: "list[asyncio.Task[None]]") -> None:
    for keeper in keepers:
        keeper.cancel()
    await asyncio.gather(*keepers, return_exceptions=True)


async def _free_port(expected: Settings, port: int | None, *, patience: float) -> int:
    """The port, once it could be bound; Failed when somebody else has it for longer than `patience` seconds."""
    host, wanted = expected.http.host, expected.http.port if port is None else port
    deadline = time.monotonic() + patience
    while True:
        try:
            return _bound(host, wanted)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Failed(f"port {wanted} on {host} cannot be bound: {error.strerror}") from None
            if time.monotonic() >= deadline:
                raise Failed(f"port {wanted} on {host} is taken: give another with --port") from None
        await asyncio.sleep(0.1)


def _bound(host: str, port: int) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
