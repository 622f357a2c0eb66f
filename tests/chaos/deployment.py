"""A deployment to be ill-treated: real servers, real processes, a scripted model, everything in one folder."""

import asyncio
import base64
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx

from config.settings import Settings, load
from gateways import embedded_postgres, embedded_valkey
from gateways.embedded_postgres import Postgres
from gateways.embedded_valkey import Valkey
from migrations.run import migrate
from tests.forked import Forked

T = TypeVar("T")

SETTINGS = {
    "AFTERTURN_OBSERVATIONAL_MEMORY": "1",
    "AFTERTURN_OBSERVER_THRESHOLD": "60",
    "AFTERTURN_OBSERVER_MAX_AGE": "1s",
    "AFTERTURN_REFLECTOR_THRESHOLD": "250",
    "AFTERTURN_MEMORY_WORKER_MODEL": "scripted",
    "AFTERTURN_MODEL_TIMEOUT": "2s",
    "AFTERTURN_WORKER_CLAIM": "2s",
    "AFTERTURN_WORKER_GRACE": "3s",
    "AFTERTURN_SWEEP_EVERY": "1s",
}


async def eventually(ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], within: float) -> T:
    """Asks until the answer is as wanted; TimeoutError, with the last answer, when it is not in time."""
    deadline = asyncio.get_running_loop().time() + within
    while not holds(answer := await ask()):
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError(f"not within {within:g} s: {answer}")
        await asyncio.sleep(0.02)
    return answer


@dataclass(slots=True)
class Program:
    """One process: killed, paused and started again at will. All that it says goes to one file.

    `ending` while whoever ends it will start it again himself.
    """

    module: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ending: bool = False
    _process: Forked | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.ending = False
        with Path(os.devnull).open("rb") as nothing, self.log.open("ab") as told:
            folder = self.log.parent  # where no .env lies
            self._process = Forked(self.module, self.environment, files=(nothing, told, told), folder=folder)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def revive(self) -> bool:
        """Starts it again when it ended by itself, as whatever supervises processes does; True when it had."""
        ended = self._process is not None and self._process.poll() is not None and not self.ending
        if ended:
            self.start()
        return ended

    async def ended(self) -> int:
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait)

    async def kill(self) -> None:
        self.ending = True
        self.send(signal.SIGKILL)
        await self.ended()

    async def replace(self) -> None:
        """Told to go, and another takes its place at once: as a deploy does it."""
        self.ending = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        await self.ended()
        self.start()


@dataclass(slots=True)
class Deployment:
    """Everything that runs. Each worker and scheduler has a name of its own whenever it starts."""

    folder: Path
    data: Postgres
    keys: Postgres
    valkey: Valkey
    settings: Settings
    environment: Mapping[str, str]
    api: Program
    model: Program
    workers: list[Program]
    schedulers: list[Program]
    url: str
    model_url: str
    http: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(trust_env=False, timeout=5))

    def program(self, name: str, *module: str, **environment: str) -> Program:
        return Program(module, {**self.environment, **environment}, self.folder / f"{name}.log")

    async def ready(self) -> None:
        """Until the API answers that it is."""

        async def status() -> int:
            try:
                return (await self.http.get(f"{self.url}/readyz")).status_code
            except httpx.HTTPError:
                return 0

        await eventually(status, lambda answer: answer == 200, 90)

    async def play(self, script: object) -> None:
        """Has the model server go on by this script."""
        answer = await self.http.post(f"{self.model_url}/script", json=script)
        assert answer.is_success, answer.text

    def programs(self) -> list[Program]:
        return [self.api, self.model, *self.workers, *self.schedulers]


@asynccontextmanager
async def deployed(folder: Path, workers: int = 3, schedulers: int = 2) -> AsyncIterator[Deployment]:
    """Runs a deployment in `folder` as long as the block lasts; whatever is left of it then is killed."""
    with ExitStack() as stack:
        data = await asyncio.to_thread(embedded_postgres.start, folder / "data")
        stack.callback(data.stop)
        keys = await asyncio.to_thread(embedded_postgres.start, folder / "keys", database="keys", role="keys")
        stack.callback(keys.stop)
        valkey = await asyncio.to_thread(embedded_valkey.start, folder / "valkey")
        stack.callback(valkey.stop)
        await migrate(data.url, keys.url)
        deployment = _described(folder, data, keys, valkey)
        deployment.workers = [
            deployment.program(f"worker-{at}", "scheduler.__main__", "worker") for at in range(workers)
        ]
        deployment.schedulers = [
            deployment.program(f"scheduler-{at}", "scheduler.__main__", "scheduler") for at in range(schedulers)
        ]
        for program in deployment.programs():
            program.start()
            stack.callback(program.send, signal.SIGKILL)
        stack.callback(lambda: [program.send(signal.SIGKILL) for program in deployment.programs()])
        await deployment.ready()
        yield deployment
        await deployment.http.aclose()


def _described(folder: Path, data: Postgres, keys: Postgres, valkey: Valkey) -> Deployment:
    master, port, model_port = base64.b64encode(secrets.token_bytes(32)).decode(), _free_port(), _free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AFTERTURN_")},
        **SETTINGS,
        "AFTERTURN_DATABASE_URL": data.url,
        "AFTERTURN_KEYS_URL": keys.url,
        "AFTERTURN_REDIS_URL": valkey.url,
        "AFTERTURN_MASTER_KEY": master,
        "AFTERTURN_PORT": str(port),
        "AFTERTURN_MODEL_BASE_URL": f"http://127.0.0.1:{model_port}/v1",
        "PYTHONSAFEPATH": "1",
    }
    settings = load(database_url=data.url, keys_url=keys.url, redis_url=valkey.url, master_key=master)
    on = settings.memory.model_copy(update={"observational_memory": True})
    model = ("gateways.scripted_model", "--port", str(model_port))
    return Deployment(
        folder=folder,
        data=data,
        keys=keys,
        valkey=valkey,
        settings=settings.model_copy(update={"memory": on}),
        environment=environment,
        api=Program(("api.__main__",), environment, folder / "api.log"),
        model=Program(model, environment, folder / "model.log"),
        workers=[],
        schedulers=[],
        url=f"http://127.0.0.1:{port}",
        model_url=f"http://127.0.0.1:{model_port}",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
