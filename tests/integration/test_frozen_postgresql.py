"""A PostgreSQL that takes connections and statements and answers nothing: everybody gives up in time, and goes on after."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Nothing, Verdict
from models import work
from models.database import Database, connect
from models.patience import UNHURRIED, Patience
from models.work import Claim, Letter
from scheduler.worker import Staffing, run_worker
from tests.integration.relay import Relay, relayed

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Servers, Serving

    from config.settings import Settings

SOON = Patience(to_connect=1.0, for_connection=1.0, for_statement=1.0)


@pytest.fixture
async def relay(settings: "Settings", servers: "Servers") -> AsyncIterator[Relay]:
    async with relayed(servers.data.url) as between:
        yield between


@pytest.fixture
async def database(relay: Relay) -> AsyncIterator[Database]:
    async with connect(relay.url, size=2, patience=SOON) as opened:
        yield opened
        relay.speak()


async def test_statements_on_both_ways_in_end_in_time_and_work_again_after(database: Database, relay: Relay) -> None:
    relay.fall_silent()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await database.pool.fetchval("SELECT 1")
    with pytest.raises(Exception) as failed:  # noqa: PT011 - SQLAlchemy's or the driver's, as the API tells them apart
        async with database.begin(1) as tx:
            await tx.execute(text("SELECT 1"))
    assert isinstance(failed.value, TimeoutError) or "Timeout" in repr(failed.value.__cause__)
    assert time.monotonic() - began < 15
    relay.speak()
    assert await database.pool.fetchval("SELECT 1") == 1
    async with database.begin(1) as tx:
        assert (await tx.execute(text("SELECT 1"))).scalar_one() == 1


async def test_a_crowd_before_a_silent_server_does_not_wait_one_after_the_other(
    database: Database, relay: Relay
) -> None:
    relay.fall_silent()
    began = time.monotonic()
    answers = await asyncio.gather(*(database.pool.fetchval("SELECT 1") for _ in range(100)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {TimeoutError}
    assert time.monotonic() - began < 8


async def test_a_crowd_of_sessions_ends_likewise(database: Database, relay: Relay) -> None:
    relay.fall_silent()

    async def asked() -> None:
        async with database.begin(1):
            pass

    began = time.monotonic()
    answers = await asyncio.gather(*(asked() for _ in range(20)), return_exceptions=True)
    assert all(isinstance(answer, Exception) for answer in answers)
    assert time.monotonic() - began < 20


async def test_what_is_made_to_take_long_may_take_long(relay: Relay) -> None:
    slow = "SELECT pg_sleep(1.5)"
    async with (
        connect(relay.url, size=2, patience=SOON) as hurried,
        connect(relay.url, size=2, patience=UNHURRIED) as unhurried,
    ):
        with pytest.raises(TimeoutError):
            await hurried.pool.execute(slow)
        await unhurried.pool.execute(slow)
        async with unhurried.begin(1) as tx:
            await tx.execute(text(slow))


@pytest.fixture
async def client(settings: "Settings", serving: "Serving", relay: Relay) -> "AsyncIterator[httpx.AsyncClient]":
    from api.app import create_app

    through = {"database_url": SecretStr(relay.url), "database_timeout": timedelta(seconds=1)}
    stores = settings.stores.model_copy(update=through)
    async with serving(create_app(settings.model_copy(update={"stores": stores}))) as served:
        yield served
        relay.speak()


async def test_requests_are_told_to_come_again_while_it_is_silent(
    client: "httpx.AsyncClient", mint: "Mint", relay: Relay
) -> None:
    key = await mint()
    turn = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "a word"}]}
    asks = {"/v1/turns": turn, "/v1/coverage/read": {"agent": "support"}, "/v1/observations/read": {"agent": "support"}}
    for path, body in asks.items():
        assert (await client.post(path, json=body, headers=key.headers)).status_code < 300
    relay.fall_silent()
    async with asyncio.timeout(40):
        answers = await asyncio.gather(
            *(client.post(path, json=body, headers=key.headers) for path, body in asks.items())
        )
        for path, answer in zip(asks, answers, strict=True):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), path
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["content-type"] == "application/problem+json"
    began = time.monotonic()
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "down")
    assert time.monotonic() - began < 4
    relay.speak()
    async with asyncio.timeout(20):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110 - HTTP has no event
            await asyncio.sleep(0.05)
    for path, body in asks.items():
        assert (await client.post(path, json=body, headers=key.headers)).status_code < 300


async def test_a_worker_goes_on_once_it_answers_again(database: Database, settings: "Settings", relay: Relay) -> None:
    kind, ran, stop = f"kind-{uuid4().hex}", asyncio.Event(), asyncio.Event()

    async def job(_: Claim, __: None) -> Verdict:
        ran.set()
        return Nothing()

    jobs = {kind: Job(QueueClass.MEMORY, job, timedelta(seconds=60))}
    staffing = Staffing(claim=timedelta(seconds=6), grace=timedelta(seconds=5), look_every=timedelta(seconds=0.5))
    redis = settings.stores.redis_url.get_secret_value()
    worker = asyncio.create_task(run_worker(database, redis, jobs, None, stop, staffing))
    async with asyncio.timeout(60):
        for _ in range(2):
            await work.add(database.pool, Letter(kind, QueueClass.MEMORY, 1, f"scope:{uuid4().hex}", uuid4().hex))
            await ran.wait()
            ran.clear()
            relay.fall_silent()
            with pytest.raises(TimeoutError):
                await database.pool.fetchval("SELECT 1")
            relay.speak()
        stop.set()
        await worker
    assert ran.is_set() is False
