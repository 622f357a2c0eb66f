"""The bell: ids only, in JSON, and never a reason for its caller to fail or to wait."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from arq.constants import job_key_prefix
from redis.asyncio import Redis
from structlog.testing import capture_logs

from config.settings import Settings
from jobs import wire
from jobs.bell import Bell
from models.work import Added

CLASS = "bell-test"


@pytest.fixture(scope="module")
async def redis(settings: Settings) -> AsyncIterator[Redis]:
    client = Redis.from_url(settings.stores.redis_url.get_secret_value())
    yield client
    await client.aclose()


@pytest.fixture
async def bell(settings: Settings, redis: Redis) -> AsyncIterator[Bell]:
    await redis.delete(wire.queue(CLASS))
    rings = Bell.connect(settings.stores.redis_url.get_secret_value())
    yield rings
    await rings.close()


async def ring(bell: Bell, *rows: Added) -> None:
    """Rings until it is heard: on a busy machine one ring may give up after its 50 ms."""
    async with asyncio.timeout(10):
        while not await bell.ring(rows):  # noqa: ASYNC110 - the bell keeps silent for a second
            await asyncio.sleep(0.05)


def added(work_id: int, epoch: int = 0, *, due: bool = True) -> Added:
    return Added(work_id, epoch, datetime.now(UTC), CLASS, due)


async def test_a_bell_is_an_arq_job_in_json_that_holds_two_ids(bell: Bell, redis: Redis) -> None:
    await ring(bell, added(4711, 3))
    assert await redis.zrange(wire.queue(CLASS), 0, -1) == [b"bell-test:4711:3"]
    job = json.loads(await redis.get(job_key_prefix + "bell-test:4711:3"))
    assert (job["f"], job["a"], job["k"]) == ("work", [4711, 3], {})
    assert 0 < await redis.pttl(job_key_prefix + "bell-test:4711:3") <= wire.LASTS


async def test_only_what_is_due_is_rung_and_each_once(bell: Bell, redis: Redis) -> None:
    await ring(bell, added(1), added(1), added(2, due=False), added(3))
    await ring(bell, added(1))
    assert await redis.zrange(wire.queue(CLASS), 0, -1) == [b"bell-test:1:0", b"bell-test:3:0"]
    assert await bell.ring([])


async def test_a_flood_rings_no_more_bells_than_wake_every_worker(bell: Bell, redis: Redis) -> None:
    await ring(bell, *(added(number) for number in range(1000)))
    assert await redis.zcard(wire.queue(CLASS)) == 64


async def test_without_redis_the_caller_hears_no_more_than_a_false() -> None:
    bell = Bell.connect("unix:///nowhere/valkey.sock")
    with capture_logs() as logs:
        began = time.monotonic()
        answers = [await bell.ring([added(1)]) for _ in range(200)]
        took = time.monotonic() - began
    assert answers == [False] * 200
    assert took < 1
    assert [event["event"] for event in logs] == ["bell_not_rung"]
    await bell.close()


async def test_a_redis_that_never_answers_costs_no_more_than_a_blink() -> None:
    taken: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: taken.append(writer), "127.0.0.1", 0)
    bell = Bell.connect(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
    began = time.monotonic()
    assert not await bell.ring([added(1)])
    assert not await bell.ring([added(1)])  # left alone for a second, so this costs nothing
    assert time.monotonic() - began < 1  # 50 ms, and room for a busy machine
    await bell.close()
    for writer in taken:
        writer.close()
    server.close()


async def test_the_bell_rings_again_once_redis_is_back(bell: Bell) -> None:
    bell._silent_until = time.monotonic() + 60
    assert not await bell.ring([added(1)])
    bell._silent_until = 0.0
    await ring(bell, added(1))
