"""What tests of the queue, the worker and the observer share: connections of their own, and logs that are driven by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis

from config.settings import Settings
from jobs.bell import Bell
from models.database import Database, connect
from scheduler.worker import Staffing, run_worker
from tests.integration.logbook import Shelf
from tests.integration.workbench import QUIET, Jobs


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Callable[..., Any]:
    """`async with opened(script)`: a log in a space of its own."""
    return Shelf(settings, resources, mint, serving, client).opened


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    async with connect(settings.stores.database_url.get_secret_value()) as opened:
        yield opened


@pytest.fixture(scope="module")
async def redis(settings: Settings) -> AsyncIterator[Redis]:
    client = Redis.from_url(settings.stores.redis_url.get_secret_value())
    yield client
    await client.aclose()


@pytest.fixture(scope="module")
async def bell(settings: Settings) -> AsyncIterator[Bell]:
    rings = Bell.connect(settings.stores.redis_url.get_secret_value())
    yield rings
    await rings.close()


@pytest.fixture
async def keys_url(servers: Any) -> str:
    """A key store in a schema of its own, that nobody has opened yet."""
    import asyncpg

    from migrations.run import migrate

    name = f"keys_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(servers.keys.url)
    await connection.execute(f"CREATE SCHEMA {name}")
    await connection.execute(f"ALTER ROLE keys SET search_path = {name}")
    await connection.close()
    try:
        await migrate(servers.data.url, servers.keys.url)
    finally:
        connection = await asyncpg.connect(servers.keys.url)
        await connection.execute("ALTER ROLE keys RESET search_path")
        await connection.close()
    return f"{servers.keys.url}&search_path={name}"


@pytest.fixture
def kind() -> str:
    return f"kind-{uuid4().hex}"


@pytest.fixture
def working(database: Database, settings: Settings) -> Callable[..., Any]:
    """`async with working(jobs, staffing)`: a worker in this process, told to stop at the end of the block."""

    @asynccontextmanager
    async def running(
        jobs: Jobs, staffing: Staffing = QUIET, metrics: CollectorRegistry | None = None
    ) -> AsyncIterator[asyncio.Event]:
        stop, url = asyncio.Event(), settings.stores.redis_url.get_secret_value()
        worker = asyncio.create_task(run_worker(database, url, jobs, None, stop, staffing, metrics))
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(10):
                await worker

    return running
