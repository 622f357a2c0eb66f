"""The pace of model calls: one for all workers while there is Redis, one for each while there is none."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis as PlainRedis
from redis.asyncio import Redis

from gateways import embedded_valkey
from gateways.embedded_valkey import Valkey
from gateways.pace import Pace
from gateways.pace_rules import SCRIPT, Limits, LocalPace, arguments
from memory.outcome import Answer, Outcome

FAILED = Answer(Outcome.PROVIDER_ERROR)
FINE = Answer(Outcome.OK, text="x")


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    server = embedded_valkey.start(tmp_path_factory.mktemp("pace"))
    yield server
    server.stop()


@pytest.fixture
async def redis(valkey: Valkey) -> AsyncIterator[Redis]:
    client: Redis = Redis.from_url(valkey.url)
    await client.flushall()
    yield client
    await client.aclose()


async def test_without_limits_every_call_goes_at_once(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits())
    assert [await pace.acquire(10_000) for _ in range(50)] == [0] * 50


async def test_requests_per_minute_are_shared_by_all_workers(redis: Redis) -> None:
    workers = [Pace(redis, "p", Limits(requests_per_minute=60)) for _ in range(4)]
    waits = await asyncio.gather(*(worker.acquire(1) for worker in workers for _ in range(10)))
    assert waits.count(0) in {10, 11}  # a sixth of a minute's, and one more on a slow machine
    assert all(0 < wait <= 1 for wait in waits if wait)
    assert await Pace(redis, "another provider", Limits(requests_per_minute=60)).acquire(1) == 0


async def test_tokens_per_minute_leave_a_debt_that_is_waited_off(redis: Redis) -> None:
    limits = Limits(tokens_per_minute=6_000)
    assert await Pace(redis, "p", limits).acquire(1_500) == 0
    wait = await Pace(redis, "p", limits).acquire(1)
    assert 3 < wait <= 5.1  # 500 tokens of debt at 100 a second


async def test_a_call_larger_than_a_minute_goes_too(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits(tokens_per_minute=600))
    assert await pace.acquire(50_000) == 0
    assert await pace.acquire(1) == 900  # never longer than a quarter of an hour at once


async def test_a_named_wait_holds_for_every_worker(redis: Redis) -> None:
    one, other = Pace(redis, "p", Limits()), Pace(redis, "p", Limits())
    await one.observe(Answer(Outcome.RATE_LIMIT, retry_after=30.0))
    assert 25 < await other.acquire(1) <= 30
    await other.pause(1.0)
    assert 25 < await one.acquire(1) <= 30


async def test_a_rate_limit_that_names_no_wait_pauses_a_little(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits())
    await pace.observe(Answer(Outcome.RATE_LIMIT))
    assert 0 < await pace.acquire(1) <= 5


async def test_a_wait_for_ever_is_cut(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits())
    await pace.pause(1e12)
    assert await pace.acquire(1) <= 900


async def test_the_circuit_opens_after_failures_in_a_row_at_any_worker_and_one_call_probes_it(redis: Redis) -> None:
    limits = Limits(failures_to_open=3, open_seconds=20, probe_seconds=60)
    workers = [Pace(redis, "p", limits) for _ in range(3)]
    await workers[0].observe(FAILED)
    await workers[1].observe(FAILED)
    await workers[2].observe(FINE)  # so they were not in a row
    for worker in workers[:2]:
        await worker.observe(FAILED)
    assert await workers[0].acquire(1) == 0
    await workers[2].observe(Answer(Outcome.TIMEOUT))
    wait = await workers[0].acquire(1)
    assert 15 < wait <= 20
    await after(redis, wait)
    waits = await asyncio.gather(*(worker.acquire(1) for worker in workers for _ in range(5)))
    assert waits.count(0) == 1
    await workers[1].observe(FINE)
    assert [await worker.acquire(1) for worker in workers] == [0, 0, 0]


async def test_a_failed_probe_opens_the_circuit_for_longer(redis: Redis) -> None:
    limits = Limits(failures_to_open=1, open_seconds=100, longest_open_seconds=300)
    pace = Pace(redis, "p", limits)
    await pace.observe(FAILED)
    await pace.observe(FAILED)  # began before it opened: says nothing new
    waits = [await pace.acquire(1)]
    for _ in range(3):
        await after(redis, waits[-1])
        assert await pace.acquire(1) == 0
        await pace.observe(FAILED)
        waits.append(await pace.acquire(1))
    assert waits == [pytest.approx(longest, abs=5) for longest in (100, 200, 300, 300)]


async def test_a_probe_that_dies_does_not_keep_the_circuit_open(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits(failures_to_open=1, open_seconds=20, probe_seconds=40))
    await pace.observe(FAILED)
    await after(redis, await pace.acquire(1))
    assert await pace.acquire(1) == 0
    wait = await pace.acquire(1)
    assert 35 < wait <= 40
    await after(redis, wait)
    assert await pace.acquire(1) == 0


@pytest.mark.parametrize("outcome", [Outcome.REFUSAL, Outcome.EMPTY, Outcome.UNPARSABLE, Outcome.DEGENERATE])
async def test_an_answer_that_is_no_good_still_shows_a_provider_alive(redis: Redis, outcome: Outcome) -> None:
    pace = Pace(redis, "p", Limits(failures_to_open=2))
    await pace.observe(FAILED)
    await pace.observe(Answer(outcome))
    await pace.observe(FAILED)
    assert await pace.acquire(1) == 0


async def test_a_flush_forgets_and_breaks_nothing(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits())
    await pace.pause(60)
    await redis.flushall()
    await redis.script_flush()
    assert await pace.acquire(1) == 0


async def test_a_clock_set_back_blocks_nobody(redis: Redis) -> None:
    pace = Pace(redis, "p", Limits(requests_per_minute=60))
    ahead = time.time() + 86_400
    await redis.hset("afterturn:pace:p", mapping={"at": ahead, "paused_until": ahead, "open_until": ahead})
    assert await pace.acquire(1) == 0


async def test_what_is_kept_in_redis_goes_away_by_itself(redis: Redis) -> None:
    await Pace(redis, "p", Limits()).acquire(1)
    assert 0 < await redis.ttl("afterturn:pace:p") <= 3_600


async def test_without_redis_each_process_keeps_the_pace_and_what_it_knew(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = embedded_valkey.start(tmp_path_factory.mktemp("dying"))
    redis: Redis = Redis.from_url(server.url)
    pace = Pace(redis, "p", Limits(requests_per_minute=60, failures_to_open=2))
    await pace.observe(FAILED)
    server.kill()
    waits = [await pace.acquire(1) for _ in range(12)]
    assert waits.count(0) in {10, 11}
    assert all(wait <= 1 for wait in waits)
    await pace.observe(FAILED)
    assert 10 < await pace.acquire(1) <= 15
    await redis.aclose()
    server.stop()


async def test_a_redis_that_hangs_holds_nobody_up() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    redis = Redis(port=server.sockets[0].getsockname()[1])
    pace = Pace(redis, "p", Limits())
    async with asyncio.timeout(3):  # one try, not one for each call
        assert [await pace.acquire(1) for _ in range(20)] == [0] * 20
    await redis.aclose()
    server.close()


async def test_a_redis_that_comes_back_is_shared_again(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.pace._TRIED_AGAIN_AFTER", 0.0)
    server = embedded_valkey.start(tmp_path_factory.mktemp("back"))
    redis: Redis = Redis.from_url(server.url)
    one, other = Pace(redis, "p", Limits()), Pace(redis, "p", Limits())
    server.kill()
    assert await one.acquire(1) == 0
    server.restart()
    await one.pause(30)
    assert 25 < await other.acquire(1) <= 30
    await redis.aclose()
    server.stop()


async def after(redis: Redis, seconds: float) -> None:
    """As if so many seconds had passed for provider p, and a moment more: every time that is kept moves back."""
    key, times = "afterturn:pace:p", ("at", "paused_until", "open_until", "probe_until")
    for name, value in zip(times, await redis.hmget(key, times), strict=True):
        if float(value):
            await redis.hset(key, name, str(float(value) - seconds - 0.01))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "acquire", "pause", "failed", "answered"]),
        st.integers(0, 3_000),
        st.floats(0, 40),
    ),
    max_size=40,
)
LIMITS = st.builds(
    Limits,
    requests_per_minute=st.sampled_from([0, 7, 60]),
    tokens_per_minute=st.sampled_from([0, 900, 6_000]),
    failures_to_open=st.integers(1, 4),
    open_seconds=st.sampled_from([5.0, 15.0]),
    longest_open_seconds=st.just(60.0),
    probe_seconds=st.sampled_from([1.0, 30.0]),
)


@given(limits=LIMITS, steps=STEPS)
def test_the_script_and_its_stand_in_say_the_same(
    valkey: Valkey, limits: Limits, steps: list[tuple[str, int, float]]
) -> None:
    timed = SCRIPT.replace("redis.call('TIME')", "{ARGV[12], 0}")
    with PlainRedis.from_url(valkey.url) as redis:
        redis.flushall()
        script = redis.register_script(timed)
        now = 1_000.0
        local = LocalPace(limits, now)
        for verb, number, passed in steps:
            now += passed
            shared = float(script(keys=["k"], args=[verb, number, *arguments(limits), now]))
            assert shared == pytest.approx(step(local, verb, number, now), abs=0.001), (verb, number)


def step(local: LocalPace, verb: str, number: int, now: float) -> float:
    match verb:
        case "acquire":
            return local.acquire(number, now)
        case "pause":
            local.pause(number, now)
        case "failed":
            local.failed(now)
        case _:
            local.answered()
    return 0.0
