"""Work is claimed: once, one job per scope, spaces in turn, no more of one space than it may have."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from models import claim as claims
from models import work
from models.claim import Crowded, Rung, Terms
from models.database import Database
from models.due import WINDOW
from models.work import Added, Claim, Letter

AGES = timedelta(hours=1)


def terms(*kinds: str, owner: str = "worker-1", per_space: int = 1000, lasts: float = 15.0) -> Terms:
    return Terms(owner, f"class-{kinds[0]}", kinds, timedelta(seconds=lasts), per_space)


async def add(
    database: Database, kind: str, spaces: Sequence[int], run_at: datetime | None = None, scope: str | None = None
) -> list[Added]:
    """One row for each of the spaces."""
    names = [uuid4().hex for _ in spaces]
    letters = [
        Letter(kind, "memory", space, scope or f"{kind}:{name}", name)
        for space, name in zip(spaces, names, strict=True)
    ]
    return await work.add_many(database.pool, [(letter, run_at) for letter in letters])


async def claim_patiently(database: Database, on: Terms, limit: int) -> list[Claim]:
    while True:
        try:
            return await claims.due(database.pool, on, limit)
        except Crowded:
            await asyncio.sleep(0)


async def test_every_row_goes_to_one_of_many_claimers(database: Database, kind: str) -> None:
    added = await add(database, kind, [index % 7 for index in range(200)])

    async def drain(owner: str) -> list[int]:
        mine: list[int] = []
        while held := await claim_patiently(database, terms(kind, owner=owner), 8):
            mine += [claim.id for claim in held]
        return mine

    taken = await asyncio.gather(*(drain(f"worker-{number}") for number in range(6)))
    assert Counter(one for mine in taken for one in mine) == Counter(row.id for row in added)


async def test_a_bell_claims_its_row_and_no_other(database: Database, kind: str) -> None:
    first, second = await add(database, kind, [1, 1])
    (claim,) = await claims.rung(database.pool, terms(kind), [Rung(second.id, second.epoch)], 5)
    assert claim.id == second.id
    assert claim.epoch == second.epoch + 1
    assert first.id in [left.id for left in await claims.due(database.pool, terms(kind), 5)]


async def test_stale_doubled_and_forged_bells_are_harmless(database: Database, kind: str) -> None:
    (row,) = await add(database, kind, [1])
    (future,) = await add(database, kind, [1], datetime.now(UTC) + AGES)
    forged = [Rung(row.id, 99), Rung(2**62, 0), Rung(0, 0), Rung(future.id, future.epoch)]
    assert await claims.rung(database.pool, terms(kind), forged, 5) == []
    twice = [Rung(row.id, row.epoch)] * 2
    assert len(await claims.rung(database.pool, terms(kind), twice, 5)) == 1
    assert await claims.rung(database.pool, terms(kind), twice, 5) == []


async def test_only_the_kinds_that_a_worker_knows_are_claimed(database: Database, kind: str) -> None:
    (row,) = await add(database, kind, [1])
    other = terms(f"{kind}-other")
    assert await claims.due(database.pool, other, 5) == []
    assert await claims.rung(database.pool, other, [Rung(row.id, row.epoch)], 5) == []


async def test_a_space_with_a_backlog_does_not_keep_the_others_waiting(database: Database, kind: str) -> None:
    # More than the window that a claim looks through, all of it due before what the others ask for.
    await add(database, kind, [1] * (WINDOW + 50), datetime.now(UTC) - AGES)
    await add(database, kind, [2, 3, 4, 5, 6])
    held = await claims.due(database.pool, terms(kind), 6)
    assert sorted(claim.space_id for claim in held) == [1, 2, 3, 4, 5, 6]


async def test_spaces_with_fewer_running_jobs_go_first(database: Database, kind: str) -> None:
    await add(database, kind, [1] * 6, datetime.now(UTC) - AGES)
    await claims.due(database.pool, terms(kind), 2)
    await add(database, kind, [2] * 3)
    assert [claim.space_id for claim in await claims.due(database.pool, terms(kind), 2)] == [2, 2]


async def test_a_space_has_no_more_jobs_at_once_than_its_cap_whoever_runs_them(database: Database, kind: str) -> None:
    added = await add(database, kind, [1] * 10)
    first = await claims.due(database.pool, terms(kind, owner="worker-1", per_space=3), 2)
    second = await claims.due(database.pool, terms(kind, owner="worker-2", per_space=3), 10)
    assert (len(first), len(second)) == (2, 1)
    bells = [Rung(row.id, row.epoch) for row in added]
    assert await claims.rung(database.pool, terms(kind, per_space=3), bells, 10) == []
    await work.complete(database.pool, first[0])
    assert len(await claims.rung(database.pool, terms(kind, per_space=3), bells, 10)) == 1


async def test_claimers_at_the_same_moment_keep_to_the_cap_together(database: Database, kind: str) -> None:
    await add(database, kind, [1] * 100)
    held = await asyncio.gather(
        *(claim_patiently(database, terms(kind, owner=f"worker-{number}", per_space=5), 10) for number in range(8))
    )
    assert sum(len(mine) for mine in held) == 5


async def test_one_job_at_a_time_has_a_scope_across_kinds(database: Database, kind: str) -> None:
    scope = f"log:{kind}"
    await add(database, kind, [1, 1], scope=scope)
    await add(database, f"{kind}-other", [1], scope=scope)
    both = terms(kind, f"{kind}-other")
    (running,) = await claims.due(database.pool, both, 10)
    assert await claims.due(database.pool, both, 10) == []
    await work.complete(database.pool, running)
    assert len(await claims.due(database.pool, both, 10)) == 1


async def test_two_classes_that_race_for_one_scope_run_one_job(database: Database, kind: str) -> None:
    for _ in range(20):
        scope = f"log:{uuid4().hex}"
        await add(database, kind, [1], scope=scope)
        await add(database, f"{kind}-other", [1], scope=scope)
        answers = await asyncio.gather(
            claims.due(database.pool, terms(kind), 1),
            claims.due(database.pool, terms(f"{kind}-other"), 1),
            return_exceptions=True,
        )
        assert all(isinstance(answer, list | Crowded) for answer in answers)
        running = await database.pool.fetchval(
            "SELECT count(*) FROM work WHERE scope = $1 AND state = 'claimed'", scope
        )
        assert running == 1
        await database.pool.execute("DELETE FROM work WHERE scope = $1", scope)


async def test_a_claim_beside_another_of_its_class_is_told_to_come_again(database: Database, kind: str) -> None:
    await add(database, kind, [1])
    async with database.pool.acquire() as other, other.transaction():
        await other.execute(
            "SELECT pg_advisory_xact_lock(hashtext('work claim'), hashtext($1))", terms(kind).queue_class
        )
        with pytest.raises(Crowded):
            await claims.due(database.pool, terms(kind), 1)
    assert len(await claims.due(database.pool, terms(kind), 1)) == 1


async def test_a_renewal_prolongs_what_is_held_and_tells_what_is_not(database: Database, kind: str) -> None:
    await add(database, kind, [1, 2, 3])
    mine = await claims.due(database.pool, terms(kind, lasts=0), 3)
    await work.complete(database.pool, mine[0])
    await work.cancel(database.pool, mine[1].space_id, mine[1].id)
    renewed = await claims.renew(database.pool, "worker-1", mine, timedelta(seconds=60))
    assert {(one.id, one.stop) for one in renewed} == {(mine[1].id, True), (mine[2].id, False)}
    left = await database.pool.fetchval(
        "SELECT claimed_until > now() + interval '50 s' FROM work WHERE id = $1", mine[2].id
    )
    assert left


async def test_nobody_renews_for_another_or_for_an_earlier_epoch(database: Database, kind: str) -> None:
    await add(database, kind, [1])
    (claim,) = await claims.due(database.pool, terms(kind), 1)
    earlier = Claim(claim.id, claim.epoch - 1, *[getattr(claim, name) for name in Claim.__slots__[2:]])
    assert await claims.renew(database.pool, "worker-2", [claim], timedelta(seconds=60)) == []
    assert await claims.renew(database.pool, "worker-1", [earlier], timedelta(seconds=60)) == []
