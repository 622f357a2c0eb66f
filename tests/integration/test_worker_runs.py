"""A worker runs what is due: rung or not, once, class by class, and says what became of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from arq.constants import job_key_prefix
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis
from structlog.testing import capture_logs

from config.settings import Settings
from jobs import wire
from jobs.bell import Bell
from jobs.job import BackOff, BulkJob, Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Hopeless, Later, Nothing, Verdict
from models import release, work
from models.database import Database, connect, driver
from models.work import Added, Claim, Letter
from scheduler.worker import Staffing, run_worker

LIMIT = timedelta(seconds=20)
AT_ONCE = BackOff(timedelta(0), timedelta(0))
QUIET = Staffing(claim=timedelta(seconds=5), grace=timedelta(seconds=5), look_every=timedelta(minutes=5))
WATCHFUL = replace(QUIET, look_every=timedelta(seconds=0.2))

Jobs = dict[str, Job[None] | BulkJob[None]]


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


def letter(kind: str, space: int = 1, queue_class: QueueClass = QueueClass.MEMORY) -> Letter:
    name = uuid4().hex
    return Letter(kind, queue_class, space, f"scope:{name}", name, {"number": 7})


async def send(database: Database, bell: Bell, *letters: Letter) -> list[Added]:
    added = await work.add_many(database.pool, [(one, None) for one in letters])
    await until(lambda: bell.ring(added))  # on a busy machine a ring may give up after its 50 ms
    return added


async def state(database: Database, work_id: int) -> str:
    return str(await database.pool.fetchval("SELECT state FROM work WHERE id = $1", work_id))


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(15):
        while not await holds():  # noqa: ASYNC110 - what is waited for happens in a server
            await asyncio.sleep(0.01)


async def until_state(database: Database, added: Added, wanted: str) -> None:
    async def holds() -> bool:
        return await state(database, added.id) == wanted

    await until(holds)


def completing(database: Database, seen: list[Claim]) -> Callable[[Claim, None], Awaitable[Verdict]]:
    """A job that completes its row in its own transaction."""

    async def job(claim: Claim, _: None) -> Verdict:
        seen.append(claim)
        async with database.begin(claim.space_id) as tx:
            await work.complete(await driver(tx), claim)
        return Done()

    return job


async def nothing(_: Claim, __: None) -> Verdict:
    return Nothing()


async def test_what_is_rung_is_run_and_done(database: Database, bell: Bell, kind: str, working: Any) -> None:
    seen: list[Claim] = []
    async with working({kind: Job(QueueClass.MEMORY, completing(database, seen), LIMIT)}):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "done")
    assert [(claim.id, claim.attempt, claim.payload) for claim in seen] == [(added.id, 1, {"number": 7})]


async def test_what_was_never_rung_is_found_all_the_same(database: Database, kind: str, working: Any) -> None:
    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, WATCHFUL):
        added = await work.add(database.pool, letter(kind))
        assert added is not None
        await until_state(database, added, "done")


async def test_a_job_with_nothing_to_write_is_completed_by_the_worker(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    registry = CollectorRegistry()
    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, metrics=registry):
        added = await send(database, bell, *(letter(kind, space) for space in range(100)))
        for one in added:
            await until_state(database, one, "done")
    assert registry.get_sample_value("afterturn_jobs_total", {"kind": kind, "outcome": "done"}) == 100


async def test_a_job_that_raises_runs_again_until_its_attempts_are_used_up(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    attempts: list[int] = []

    async def fail(claim: Claim, _: None) -> Verdict:
        attempts.append(claim.attempt)
        raise ValueError("Ana Ribeiro moved to Porto")

    job = Job(QueueClass.MEMORY, fail, LIMIT, attempts=3, back_off=AT_ONCE)
    with capture_logs() as logs:
        async with working({kind: job}, WATCHFUL):
            (added,) = await send(database, bell, letter(kind))
            await until_state(database, added, "dead")
    assert attempts == [1, 2, 3]
    assert await database.pool.fetchval("SELECT last_error FROM work WHERE id = $1", added.id) == "ValueError"
    # The renderer reduces an exception to its type and place; nothing else of it may enter the events.
    assert "Ana" not in str([{k: v for k, v in event.items() if k != "exc_info"} for event in logs])


async def test_a_job_says_itself_when_to_come_again_or_that_it_is_hopeless(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    async def wait_then_give_up(claim: Claim, _: None) -> Verdict:
        return Hopeless("no_such_request") if claim.waits else Later(0.0, "paced", counts=False)

    async with working({kind: Job(QueueClass.MEMORY, wait_then_give_up, LIMIT)}, WATCHFUL):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "dead")
    row = await database.pool.fetchrow("SELECT attempt, waits, last_error FROM work WHERE id = $1", added.id)
    assert tuple(row) == (1, 1, "no_such_request")


async def test_a_run_past_its_limit_is_ended_and_tried_again(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    async def hang(claim: Claim, _: None) -> Verdict:
        if claim.attempt == 1:
            await asyncio.Event().wait()
        return Nothing()

    job = Job(QueueClass.MEMORY, hang, timedelta(seconds=0.2), back_off=AT_ONCE)
    async with working({kind: job}, WATCHFUL):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "done")
    row = await database.pool.fetchrow("SELECT attempt, last_error FROM work WHERE id = $1", added.id)
    assert tuple(row) == (2, "time_limit")


async def test_a_job_that_leaks_a_cancellation_is_tried_again(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    async def leak(claim: Claim, _: None) -> Verdict:
        if claim.attempt == 1:
            raise asyncio.CancelledError
        return Nothing()

    async with working({kind: Job(QueueClass.MEMORY, leak, LIMIT, back_off=AT_ONCE)}, WATCHFUL):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "done")


async def test_a_job_that_was_overtaken_writes_nothing_and_leaves_the_other_alone(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    runs: list[Claim] = []

    async def overtaken(claim: Claim, _: None) -> Verdict:
        runs.append(claim)
        if len(runs) == 1:
            await database.pool.execute(
                "UPDATE work SET claimed_until = now() - interval '1 s' WHERE id = $1", claim.id
            )
            await release.recover_expired(database.pool, {})
        async with database.begin(claim.space_id) as tx:
            connection = await driver(tx)
            await work.add(connection, Letter(f"{kind}-effect", "memory", 1, claim.scope, f"run-{len(runs)}"))
            await work.complete(connection, claim)
        return Done()

    async with working({kind: Job(QueueClass.MEMORY, overtaken, LIMIT)}, WATCHFUL):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "done")
    effects = await database.pool.fetch("SELECT dedup FROM work WHERE kind = $1", f"{kind}-effect")
    assert [effect["dedup"] for effect in effects] == ["run-2"]


async def test_a_running_job_is_stopped_when_an_operator_asks(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def long(_: Claim, __: None) -> Verdict:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Nothing()

    staffing = replace(QUIET, claim=timedelta(seconds=1))
    async with working({kind: Job(QueueClass.MEMORY, long, LIMIT)}, staffing):
        (added,) = await send(database, bell, letter(kind))
        await began.wait()
        assert await work.cancel(database.pool, 1, added.id) == "claimed"
        await until_state(database, added, "cancelled")
        assert ended.is_set()


async def test_a_claim_is_kept_alive_for_as_long_as_the_job_runs(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    runs: list[int] = []

    async def outlives_two_claims(claim: Claim, _: None) -> Verdict:
        runs.append(claim.id)
        first = await database.pool.fetchval("SELECT claimed_until FROM work WHERE id = $1", claim.id)

        async def renewed() -> bool:
            await release.recover_expired(database.pool, {})
            return bool(
                await database.pool.fetchval(
                    "SELECT claimed_until > $2 FROM work WHERE id = $1", claim.id, first + claim_lasts * 2
                )
            )

        await until(renewed)
        return Nothing()

    claim_lasts = timedelta(seconds=1)
    async with working(
        {kind: Job(QueueClass.MEMORY, outlives_two_claims, LIMIT)}, replace(WATCHFUL, claim=claim_lasts)
    ):
        (added,) = await send(database, bell, letter(kind))
        await until_state(database, added, "done")
    assert runs == [added.id]


async def test_a_worker_that_stops_finishes_what_is_short_and_hands_back_what_is_long(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    began: asyncio.Queue[str] = asyncio.Queue()
    stopped = asyncio.Event()

    async def short(_: Claim, __: None) -> Verdict:
        began.put_nowait("short")
        await stopped.wait()
        return Nothing()

    async def long(_: Claim, __: None) -> Verdict:
        began.put_nowait("long")
        await asyncio.Event().wait()
        return Nothing()

    jobs: Jobs = {
        kind: Job(QueueClass.MEMORY, short, LIMIT),
        f"{kind}-long": Job(QueueClass.INTERACTIVE, long, LIMIT),
    }
    async with working(jobs, replace(QUIET, grace=timedelta(seconds=4))) as stop:
        brief, lengthy = await send(
            database, bell, letter(kind), letter(f"{kind}-long", queue_class=QueueClass.INTERACTIVE)
        )
        assert {await began.get(), await began.get()} == {"short", "long"}
        stop.set()
        (unheard,) = await send(database, bell, letter(kind))
        stopped.set()
    assert await state(database, brief.id) == "done"
    assert await state(database, unheard.id) == "ready"
    row = await database.pool.fetchrow("SELECT state, attempt, crashes FROM work WHERE id = $1", lengthy.id)
    assert tuple(row) == ("ready", 0, 0)


async def test_a_flood_in_one_class_leaves_the_others_their_slots(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    free = asyncio.Event()

    async def blocked(_: Claim, __: None) -> Verdict:
        await free.wait()
        return Nothing()

    jobs: Jobs = {
        kind: Job(QueueClass.MEMORY, blocked, LIMIT),
        f"{kind}-person": Job(QueueClass.INTERACTIVE, nothing, LIMIT),
    }
    async with working(jobs):
        await send(database, bell, *(letter(kind, space) for space in range(200)))
        (asked,) = await send(database, bell, letter(f"{kind}-person", queue_class=QueueClass.INTERACTIVE))
        await until_state(database, asked, "done")
        free.set()


async def test_a_space_has_no_more_runs_than_its_cap_and_the_others_go_on(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    free, running, most = asyncio.Event(), 0, 0

    async def blocked(claim: Claim, _: None) -> Verdict:
        nonlocal running, most
        if claim.space_id == 1:
            running += 1
            most = max(most, running)
            await free.wait()
            running -= 1
        return Nothing()

    async with working({kind: Job(QueueClass.MEMORY, blocked, LIMIT)}, replace(WATCHFUL, per_space=3)):
        flood = await send(database, bell, *(letter(kind, 1) for _ in range(50)))
        others = await send(database, bell, *(letter(kind, space) for space in range(2, 40)))
        for one in others:
            await until_state(database, one, "done")
        assert most == 3
        free.set()
        for one in flood:
            await until_state(database, one, "done")
    assert most == 3


async def test_bulk_work_is_run_many_rows_at_a_time(database: Database, bell: Bell, kind: str, working: Any) -> None:
    batches: list[int] = []

    async def many(claims: Sequence[Claim], _: None) -> Verdict:
        batches.append(len(claims))
        async with database.pool.acquire() as connection, connection.transaction():
            await work.complete_many(connection, claims)
        return Done()

    jobs: Jobs = {kind: BulkJob(QueueClass.HOUSEKEEPING, many, LIMIT, batch=50)}
    added = await work.add_many(
        database.pool, [(letter(kind, queue_class=QueueClass.HOUSEKEEPING), None) for _ in range(400)]
    )
    async with working(jobs):
        await until(lambda: bell.ring(added[:1]))
        for one in added:
            await until_state(database, one, "done")
    assert sum(batches) == 400
    assert len(batches) <= 10


async def test_noise_in_the_queue_is_logged_counted_and_does_no_harm(
    database: Database, bell: Bell, redis: Redis, kind: str, working: Any
) -> None:
    registry, queue = CollectorRegistry(), wire.queue(QueueClass.MEMORY)
    with capture_logs() as logs:
        async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, metrics=registry):
            for name, content in (
                ("a", b"\x80\x04garbage"),
                ("\N{BELL}", b'{"f": "rm", "a": [1, 2], "k": {}, "t": 1, "et": 1}'),
            ):
                await redis.set(job_key_prefix + name, content)
                await redis.zadd(queue, {name: 1})
            await redis.zadd(queue, {"a bell without a job": 1})
            (added,) = await send(database, bell, letter(kind))
            await until_state(database, added, "done")
    noise = {event["why"] for event in logs if event["event"] == "bell_not_understood"}
    assert noise == {"undecodable", "unknown function"}
    assert registry.get_sample_value("afterturn_bells_not_understood_total", {"queue_class": "memory"}) == 2
    assert await redis.zcard(queue) == 0


async def test_a_kind_that_this_release_does_not_know_waits_for_one_that_does(
    database: Database, bell: Bell, kind: str, working: Any
) -> None:
    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}, WATCHFUL):
        (strange,) = await send(database, bell, letter(f"{kind}-new"))
        (known,) = await send(database, bell, letter(kind))
        await until_state(database, known, "done")
    assert await state(database, strange.id) == "ready"


async def test_a_worker_says_that_it_lives_under_a_name_of_its_own(redis: Redis, kind: str, working: Any) -> None:
    async def alive() -> bool:
        return bool(await redis.keys("arq:afterturn:memory:*:*"))

    async with working({kind: Job(QueueClass.MEMORY, nothing, LIMIT)}):
        await until(alive)
