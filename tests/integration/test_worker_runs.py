"""A worker runs what is due: rung or not, once, and says what became of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from jobs.bell import Bell
from jobs.job import Job
from jobs.letters import QueueClass
from jobs.verdict import Done, Hopeless, Later, Nothing, Verdict
from models import release, work
from models.database import Database, driver
from models.work import Claim, Letter
from tests.integration.workbench import AT_ONCE, LIMIT, QUIET, WATCHFUL, letter, nothing, send, until, until_state


def completing(database: Database, seen: list[Claim]) -> Callable[[Claim, None], Awaitable[Verdict]]:
    """A job that completes its row in its own transaction."""

    async def job(claim: Claim, _: None) -> Verdict:
        seen.append(claim)
        async with database.begin(claim.space_id) as tx:
            await work.complete(await driver(tx), claim)
        return Done()

    return job


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
    assert await database.pool.fetchval("SELECT attempt FROM work WHERE id = $1", added.id) == 2


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
