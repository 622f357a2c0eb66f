"""Work ends: with its effects or not at all; a failure, a crash or a stop brings it back without a trace of doubt."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from models import backlog, release, work
from models import claim as claims
from models.claim import Terms
from models.database import Database, driver
from models.work import Claim, Letter, Superseded

SOON, MINUTE = timedelta(0), timedelta(minutes=1)


@pytest.fixture
def letter() -> Letter:
    name = uuid4().hex
    return Letter(f"kind-{name}", "memory", 1, scope=f"log:{name}", dedup=f"log:{name}")


async def claimed(database: Database, letter: Letter, lasts: float = 15.0) -> Claim:
    """The letter's work, claimed. `lasts=0`: by a worker that has died."""
    await work.add(database.pool, letter)
    terms = Terms("worker-1", letter.queue_class, (letter.kind,), timedelta(seconds=lasts), 100)
    (claim,) = await claims.due(database.pool, terms, 1)
    return claim


async def row(database: Database, work_id: int) -> dict[str, Any]:
    return dict(await database.pool.fetchrow("SELECT *, run_at - now() AS left FROM work WHERE id = $1", work_id))


async def test_work_is_done_in_the_transaction_of_its_effects(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    async with database.begin(claim.space_id) as tx:
        await work.complete(await driver(tx), claim)
        assert (await row(database, claim.id))["state"] == "claimed"
    ended = await row(database, claim.id)
    assert ended["state"] == "done"
    assert ended["finished_at"] is not None


async def test_a_worker_that_was_overtaken_writes_nothing(database: Database, letter: Letter) -> None:
    zombie = await claimed(database, letter, lasts=0)
    await release.recover_expired(database.pool, {})
    await claimed(database, letter)
    with pytest.raises(Superseded):
        await _write_with_effect(database, zombie, letter)
    effects = await database.pool.fetchval("SELECT count(*) FROM work WHERE kind = $1", f"{letter.kind}-effect")
    assert effects == 0


async def _write_with_effect(database: Database, claim: Claim, letter: Letter) -> None:
    async with database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await work.add(connection, Letter(f"{letter.kind}-effect", "memory", 1, letter.scope, letter.dedup))
        await work.complete(connection, claim)


async def test_nothing_is_completed_twice_or_in_part(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    other = await claimed(database, Letter(letter.kind, "memory", 1, f"{letter.scope}-2", f"{letter.dedup}-2"))
    await work.complete(database.pool, claim)
    with pytest.raises(Superseded):
        await _complete_in_transaction(database, [other, claim])
    assert (await row(database, other.id))["state"] == "claimed"
    assert await work.complete_held(database.pool, [other, claim]) == {other.id}


async def _complete_in_transaction(database: Database, both: list[Claim]) -> None:
    async with database.pool.acquire() as connection, connection.transaction():
        await work.complete_many(connection, both)


async def test_progress_is_kept_for_the_next_run_and_refused_to_a_former_one(
    database: Database, letter: Letter
) -> None:
    claim = await claimed(database, letter)
    await work.advance(database.pool, claim, {"after": 41})
    await release.retry_later(database.pool, claim, SOON, "Reset", counts=True)
    again = await claimed(database, letter)
    assert again.progress == {"after": 41}
    with pytest.raises(Superseded):
        await work.advance(database.pool, claim, {"after": 12})


async def test_a_failure_waits_counts_and_leaves_its_code(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    added = await release.retry_later(database.pool, claim, MINUTE, "rate_limit", counts=True)
    assert added is not None
    assert not added.due
    ended = await row(database, claim.id)
    assert (ended["state"], ended["attempt"], ended["waits"], ended["last_error"]) == ("ready", 1, 1, "rate_limit")
    assert timedelta(seconds=50) < ended["left"] <= MINUTE


async def test_waiting_for_a_provider_uses_up_no_attempt(database: Database, letter: Letter) -> None:
    for waits in range(1, 4):
        claim = await claimed(database, letter)
        assert (claim.attempt, claim.waits) == (1, waits - 1)
        await release.retry_later(database.pool, claim, SOON, "provider_error", counts=False)


async def test_failures_are_counted_in_a_row_by_their_kind_and_from_the_last_step_on(
    database: Database, letter: Letter
) -> None:
    seen = []
    for error in ("provider_error", "provider_error", "OSError", "OSError", "OSError"):
        claim = await claimed(database, letter)
        seen.append((claim.waits, claim.last_error))
        if len(seen) == 5:
            await work.advance(database.pool, claim, {"at": 1})
        await release.retry_later(database.pool, claim, SOON, error, counts=error == "OSError")
    last = await claimed(database, letter)
    assert seen == [(0, None), (1, "provider_error"), (2, "provider_error"), (1, "OSError"), (2, "OSError")]
    assert (last.waits, last.last_error) == (1, "OSError")
    assert last.attempt == 4


async def test_a_worker_that_stops_hands_back_as_if_it_had_never_claimed(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    added = await release.give_back(database.pool, claim)
    assert added is not None
    assert added.due
    ended = await row(database, claim.id)
    assert (ended["state"], ended["attempt"], ended["waits"], ended["crashes"]) == ("ready", 0, 0, 0)
    assert ended["epoch"] == claim.epoch
    assert await release.give_back(database.pool, claim) is None


async def test_a_retry_that_meets_a_ready_twin_is_merged_into_it(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    twin = await work.add(database.pool, letter, await _in_an_hour(database))
    assert twin is not None
    added = await release.retry_later(database.pool, claim, MINUTE, "unparsable", counts=True)
    assert added is not None
    assert added.id == twin.id
    assert (await row(database, claim.id))["state"] == "merged"
    left = await row(database, twin.id)
    assert (left["state"], left["attempt"], left["last_error"]) == ("ready", 1, "unparsable")
    assert left["left"] <= MINUTE  # the earlier of the two times


async def _in_an_hour(database: Database) -> Any:
    return await database.pool.fetchval("SELECT now() + interval '1 hour'")


async def test_retries_and_new_letters_that_race_leave_one_ready_row(database: Database, letter: Letter) -> None:
    for _ in range(25):
        claim = await claimed(database, letter)
        await asyncio.gather(
            release.retry_later(database.pool, claim, SOON, "Reset", counts=True),
            *(work.add(database.pool, letter) for _ in range(4)),
        )
        states = await database.pool.fetch(
            "SELECT state FROM work WHERE kind = $1 AND state IN ('ready', 'claimed')", letter.kind
        )
        assert [found["state"] for found in states] == ["ready"]


async def test_a_dead_workers_work_comes_back_with_the_crash_counted(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter, lasts=0)
    recovered = {added.id: added for added in await release.recover_expired(database.pool, {})}
    assert recovered[claim.id].due
    again = await claimed(database, letter)
    assert (again.attempt, again.crashes) == (2, 1)


async def test_living_claims_are_left_alone(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    assert claim.id not in {added.id for added in await release.recover_expired(database.pool, {})}
    assert (await row(database, claim.id))["state"] == "claimed"


async def test_two_sweeps_at_once_count_one_crash(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter, lasts=0)
    await asyncio.gather(*(release.recover_expired(database.pool, {}) for _ in range(4)))
    assert (await row(database, claim.id))["crashes"] == 1


async def test_work_that_keeps_killing_workers_slows_down_and_dies_where_its_kind_has_a_limit(
    database: Database, letter: Letter
) -> None:
    limits = {letter.kind: 3}
    for _ in range(2):
        await database.pool.execute("UPDATE work SET run_at = now() WHERE kind = $1", letter.kind)
        claim = await claimed(database, letter, lasts=0)
        await release.recover_expired(database.pool, limits)
    waiting = await row(database, claim.id)
    assert waiting["state"] == "ready"
    assert waiting["left"] > timedelta(seconds=3)
    await database.pool.execute("UPDATE work SET run_at = now() WHERE kind = $1", letter.kind)
    await claimed(database, letter, lasts=0)
    await release.recover_expired(database.pool, limits)
    dead = await row(database, claim.id)
    assert (dead["state"], dead["crashes"], dead["last_error"]) == ("dead", 3, "crashed")


async def test_work_without_a_limit_never_dies_of_crashes(database: Database, letter: Letter) -> None:
    await work.add(database.pool, letter)
    for _ in range(30):
        await database.pool.execute("UPDATE work SET run_at = now() WHERE kind = $1", letter.kind)
        claim = await claimed(database, letter, lasts=0)
        await release.recover_expired(database.pool, {f"{letter.kind}-other": 1})
    ended = await row(database, claim.id)
    assert (ended["state"], ended["crashes"]) == ("ready", 30)
    assert ended["left"] <= timedelta(minutes=10)


async def test_ready_work_is_cancelled_at_once_and_claimed_work_is_asked(database: Database, letter: Letter) -> None:
    added = await work.add(database.pool, letter)
    assert added is not None
    assert await work.cancel(database.pool, 2, added.id) is None  # another space's
    assert await work.cancel(database.pool, 1, added.id) == "cancelled"
    assert await work.cancel(database.pool, 1, added.id) is None
    claim = await claimed(database, letter)
    assert await work.cancel(database.pool, 1, claim.id) == "claimed"
    assert await release.retry_later(database.pool, claim, SOON, "Stopped", counts=True) is None
    assert (await row(database, claim.id))["state"] == "cancelled"


async def test_a_crash_of_work_that_was_asked_to_stop_cancels_it(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter, lasts=0)
    await work.cancel(database.pool, 1, claim.id)
    await release.recover_expired(database.pool, {})
    assert (await row(database, claim.id))["state"] == "cancelled"


async def test_dead_work_stays_until_somebody_revives_it(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    assert await release.bury(database.pool, claim, "export_failed")
    assert not await release.bury(database.pool, claim, "export_failed")
    await backlog.prune(database.pool, SOON)
    assert (await row(database, claim.id))["last_error"] == "export_failed"
    assert await work.revive(database.pool, 2, claim.id) is None
    revived = await work.revive(database.pool, 1, claim.id)
    assert revived is not None
    assert (await claimed(database, letter)).attempt == 1


async def test_dead_work_is_not_revived_beside_its_like(database: Database, letter: Letter) -> None:
    claim = await claimed(database, letter)
    await release.bury(database.pool, claim, "export_failed")
    await work.add(database.pool, letter)
    assert await work.revive(database.pool, 1, claim.id) is None


async def test_finished_work_is_pruned_by_age_and_in_portions(database: Database, letter: Letter) -> None:
    for _ in range(3):
        await work.complete(database.pool, await claimed(database, letter))
    assert await backlog.prune(database.pool, timedelta(days=1)) == 0
    await database.pool.execute("UPDATE work SET finished_at = now() - interval '2 days' WHERE kind = $1", letter.kind)
    assert await backlog.prune(database.pool, timedelta(days=1), limit=2) == 2
    assert await backlog.prune(database.pool, timedelta(days=1), limit=2) == 1


async def test_the_depth_of_a_space_says_what_waits_runs_and_died(database: Database, letter: Letter) -> None:
    space = int(uuid4()) % 2**40
    there = [Letter(letter.kind, f"class-{letter.kind}", space, f"{letter.scope}-{n}", f"{n}") for n in range(3)]
    claim = await claimed(database, there[0])
    await release.bury(database.pool, await claimed(database, there[1]), "no_use")
    await work.add(database.pool, there[2], await _in_an_hour(database))
    found = {depth.state: (depth.rows, depth.due) for depth in await backlog.depths(database.pool, space)}
    assert found == {"claimed": (1, 1), "dead": (1, 1), "ready": (1, 0)}
    assert claim.id
    assert letter.kind in await backlog.strangers(database.pool, ["observe"])
    assert letter.kind not in await backlog.strangers(database.pool, [letter.kind])


async def test_what_had_no_bell_is_rung_once_spaces_in_turn(database: Database, letter: Letter) -> None:
    flood = [Letter(letter.kind, "memory", 1, f"{letter.scope}-{n}", f"{n}") for n in range(40)]
    await work.add_many(database.pool, [(one, None) for one in flood])
    await work.add(database.pool, Letter(letter.kind, "memory", 2, f"{letter.scope}-x", "x"))
    assert await backlog.unrung(database.pool, [letter.kind], 10) == []  # their producer is about to ring
    rung = await backlog.unrung(database.pool, [letter.kind], 10, quiet=SOON)
    assert len(rung) == 10
    spaces = await database.pool.fetch("SELECT space_id FROM work WHERE id = ANY($1)", [one.id for one in rung])
    assert {found["space_id"] for found in spaces} == {1, 2}
    assert all(one.due for one in rung)
