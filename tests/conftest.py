"""Real servers for every test that needs them: two PostgreSQL clusters (data, keys) and a Valkey, once per session."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import settings as how_properties_are_tried

if TYPE_CHECKING:  # what a fixture needs is imported by the fixture: a unit test starts without it
    import httpx
    from fastapi import FastAPI

    from config.settings import Settings
    from gateways.embedded_postgres import Postgres
    from gateways.embedded_valkey import Valkey
    from jobs.resources import Resources
    from models.log import Log
    from models.observation import Observation
    from privacy.sealing import SealingKey

    Serving = Callable[[FastAPI], AbstractAsyncContextManager[httpx.AsyncClient]]

T = TypeVar("T")

# What fails, fails for what was changed: properties are tried on the same values every time. New values are looked for by
# hand: `make explore`, or `--hypothesis-profile=explore` on any of them.
how_properties_are_tried.register_profile("same", max_examples=80, deadline=None, derandomize=True)
how_properties_are_tried.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
how_properties_are_tried.load_profile("same")


@dataclass(frozen=True, slots=True)
class Servers:
    """What runs for this session, each in a folder of its own. A test that stops one starts it again."""

    data: Postgres
    keys: Postgres
    valkey: Valkey


@dataclass(frozen=True, slots=True)
class Minted:
    """A key, with its secret; `space` is the space's number, `owner` whose memory it writes by default."""

    id: str
    secret: str
    space: int
    lookup_key: UUID
    owner: UUID

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


class Mint(Protocol):
    """Makes a key in a space, and the space where it is new. Without `owner` the key itself owns its log."""

    async def __call__(
        self,
        space: str | None = None,
        scopes: tuple[str, ...] = ("turns:write", "memory:read"),
        *,
        agent: str | None = None,
        owner: str | None = None,
        admin: bool = False,
        allow_impersonation: bool = False,
        contexts: bool = False,
    ) -> Minted: ...


class Remember(Protocol):
    """Puts lines into the log of a key's owner, as an observer would have; answers their ids."""

    async def __call__(
        self,
        key: Minted,
        *texts: str,
        agent: str = "support",
        context: str = "corporate",
        supersedes: int | None = None,
    ) -> list[int]: ...


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Tracebacks in plain text: drawn with frames and locals each takes seconds."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Started at first use."""
    from gateways import embedded_postgres, embedded_valkey

    folder = tmp_path_factory.mktemp("servers")
    quick = {"fsync": "off"}  # tests kill servers, never the machine: what was committed outlives that all the same
    data = embedded_postgres.start(folder / "data", settings=quick)
    keys = embedded_postgres.start(folder / "keys", database="keys", role="keys", settings=quick)
    valkey = embedded_valkey.start(folder / "valkey")
    yield Servers(data, keys, valkey)
    valkey.stop()
    keys.stop()
    data.stop()


@pytest.fixture(scope="session")
async def settings(servers: Servers) -> Settings:
    """Both databases at this release's schema; memory on. Change one concern with `settings.model_copy(update=…)`."""
    from config.settings import load
    from migrations.run import migrate

    await migrate(servers.data.url, servers.keys.url)
    await _number_spaces_high(servers.data.url)
    loaded = load(
        database_url=servers.data.url,
        keys_url=servers.keys.url,
        redis_url=servers.valkey.url,
        master_key=base64.b64encode(os.urandom(32)).decode(),
    )
    return loaded.model_copy(update={"memory": loaded.memory.model_copy(update={"observational_memory": True})})


async def _number_spaces_high(url: str) -> None:
    # The queue's tests make work for spaces 1, 2, 3 that are nobody's: no minted space may be one of them.
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute("ALTER TABLE spaces ALTER COLUMN id RESTART WITH 1000001")
    await connection.close()


@pytest.fixture(scope="session")
async def resources(settings: Settings) -> AsyncIterator[Resources]:
    from jobs.resources import opened

    async with _in_one_task(opened(settings)) as everything:
        yield everything


@pytest.fixture(scope="session")
def mint(resources: Resources) -> Mint:
    """Makes keys. Without a space's name the key gets a new space, so that tests do not meet."""
    from intake.identity import People
    from models import api_key
    from models.api_key import ApiKey, Scope
    from models.subject import HandleKind
    from privacy.hashing import api_secret, api_secret_digest

    async def minted(
        space: str | None = None,
        scopes: tuple[str, ...] = ("turns:write", "memory:read"),
        *,
        agent: str | None = None,
        owner: str | None = None,
        admin: bool = False,
        allow_impersonation: bool = False,
        contexts: bool = False,
    ) -> Minted:
        space_id, lookup_key = await _space(resources, space or f"space-{uuid4().hex}", contexts=contexts)
        key_id, secret = f"key_{uuid4().hex[:12]}", api_secret()
        kind, handle = (HandleKind.OWNER, owner) if owner else (HandleKind.KEY, key_id)
        people = People(resources.database, resources.keys)
        subject = await people.subject(space_id, lookup_key, (kind, handle), make=True)
        assert subject is not None
        key = ApiKey(
            id=key_id,
            space_id=space_id,
            name="test",
            secret_digest=api_secret_digest(secret),
            scopes=[str(Scope(scope)) for scope in scopes],
            agent=agent,
            owner_subject=subject,
            owner_kind=kind,
            admin=admin,
            allow_impersonation=allow_impersonation,
        )
        await api_key.mint(resources.database.pool, key)
        return Minted(key_id, secret, space_id, lookup_key, subject)

    return minted


async def _space(resources: Resources, name: str, *, contexts: bool) -> tuple[int, UUID]:
    from models import space as spaces

    found = await spaces.named(resources.database.pool, name)
    if found is None:
        key = await resources.keys.make(uuid4(), "space")
        found = await spaces.make(resources.database.pool, name, key.id)
    if contexts:
        await resources.database.pool.execute(
            "UPDATE spaces SET features = features || $2 WHERE id = $1", found[0], {"contexts": True}
        )
    return found


@pytest.fixture(scope="session")
def remember(resources: Resources) -> Remember:
    """Writes observations without turns, a model or a worker."""
    from models import append, log, observation
    from models.append import LogName
    from models.database import driver

    async def remembered(
        key: Minted, *texts: str, agent: str = "support", context: str = "corporate", supersedes: int | None = None
    ) -> list[int]:
        sealing = await resources.keys.key(key.owner)
        async with resources.database.begin(key.space) as tx:
            locked = await append.lock_logs(await driver(tx), key.space, [LogName(key.owner, agent, context)])
            live = await log.lock(tx, key.space, next(iter(locked.values())).id)
            assert live is not None
            rows = [_line(live, sealing, day, text) for day, text in enumerate(texts)]
            for row in rows:
                row.supersedes = supersedes
            ids = await observation.append(tx, rows)
            live.live_tokens = await observation.live_tokens(tx, live.id, live.generation)
        return ids

    return remembered


def _line(log: Log, sealing: SealingKey, day: int, text: str) -> Observation:
    """A line as an observer writes it, of a turn of 2 March 2026 or so many days later."""
    from datetime import UTC, datetime, timedelta

    from memory import tokens
    from memory.observation import Draft, Kind, Priority
    from models.content import line_digest, seal_line
    from models.observation import Observation

    began = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)
    return Observation(
        space_id=log.space_id,
        log_id=log.id,
        subject_id=log.subject_id,
        generation=log.generation,
        sealed=seal_line(sealing, Draft(text, Kind.EVENT, Priority.MEDIUM, began, (1,))),
        digest=line_digest(sealing, text, None),
        kind=Kind.EVENT,
        priority=Priority.MEDIUM,
        tokens=tokens.count(text),
        observed_at=began + timedelta(days=day),
        observed_offset=0,
        evidence=[1],
        sources=[],
        born_at=began,
    )


@pytest.fixture(scope="session")
def serving() -> Serving:
    """`async with serving(app) as client`: the app with its lifespan, without a socket."""
    return _serving


@pytest.fixture(scope="session")
async def client(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The API with the session's settings."""
    from api.app import create_app

    async with _serving(create_app(settings)) as served:
        yield served


@asynccontextmanager
async def _serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    import httpx

    transport = httpx.ASGITransport(app=app)
    async with (
        _in_one_task(app.router.lifespan_context(app)),
        httpx.AsyncClient(transport=transport, base_url="http://afterturn") as served,
    ):
        yield served


@asynccontextmanager
async def _in_one_task(block: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    # A fixture's two halves run in two tasks, and a task group inside must be left by the task that entered it.
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        async with block as value:
            entered.set_result(value)
            await leave.wait()

    holder = asyncio.create_task(hold())
    holder.add_done_callback(lambda _: entered.done() or entered.cancel())
    try:
        yield await entered
    finally:
        leave.set()
        await holder
