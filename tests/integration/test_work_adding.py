"""Work is added: once per key while it waits, earliest time first, and never so that a wake-up is lost."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from models import claim as claims
from models import work
from models.claim import Rung, Terms
from models.database import Database
from models.work import Letter

LATER = datetime.now(UTC) + timedelta(hours=1)
MUCH_LATER = LATER + timedelta(hours=1)


@pytest.fixture
def letter() -> Letter:
    name = uuid4().hex
    return Letter(f"kind-{name}", "memory", 1, scope=f"log:{name}", dedup=f"log:{name}", payload={"log_id": 7})


def terms(letter: Letter, per_space: int = 100) -> Terms:
    return Terms("worker-1", letter.queue_class, (letter.kind,), timedelta(seconds=15), per_space)


async def rows(database: Database, letter: Letter) -> list[tuple[str, datetime]]:
    found = await database.pool.fetch("SELECT state, run_at FROM work WHERE kind = $1 ORDER BY id", letter.kind)
    return [tuple(row) for row in found]


async def test_the_same_work_waits_once_and_keeps_the_earliest_time(database: Database, letter: Letter) -> None:
    first = await work.add(database.pool, letter, LATER)
    later = await work.add(database.pool, letter, MUCH_LATER)
    assert first is not None
    assert not first.due
    assert later is None
    assert await rows(database, letter) == [("ready", LATER)]


async def test_work_that_is_due_sooner_is_pulled_forward_and_may_be_rung(database: Database, letter: Letter) -> None:
    first = await work.add(database.pool, letter, LATER)
    now = await work.add(database.pool, letter)
    assert first is not None
    assert now is not None
    assert now.id == first.id
    assert now.due
    assert len(await rows(database, letter)) == 1


async def test_work_that_waits_already_is_not_written_again(database: Database, letter: Letter) -> None:
    await work.add(database.pool, letter)
    before = await database.pool.fetchval("SELECT ctid FROM work WHERE kind = $1", letter.kind)
    assert await work.add(database.pool, letter, MUCH_LATER) is None
    assert await database.pool.fetchval("SELECT ctid FROM work WHERE kind = $1", letter.kind) == before


async def test_equal_letters_in_one_call_make_one_row_at_the_earliest_time(database: Database, letter: Letter) -> None:
    added = await work.add_many(database.pool, [(letter, MUCH_LATER), (letter, None), (letter, LATER)])
    assert [row.due for row in added] == [True]
    assert await work.add_many(database.pool, []) == []


async def test_what_arrives_while_the_work_runs_becomes_a_new_row_that_waits_for_it(
    database: Database, letter: Letter
) -> None:
    await work.add(database.pool, letter)
    (running,) = await claims.due(database.pool, terms(letter), 10)
    added = await work.add(database.pool, letter)
    assert added is not None
    assert added.id != running.id
    assert await claims.due(database.pool, terms(letter), 10) == []
    await work.complete(database.pool, running)
    (after,) = await claims.due(database.pool, terms(letter), 10)
    assert after.id == added.id


async def test_nobody_claims_the_work_before_what_it_announces_is_committed(database: Database, letter: Letter) -> None:
    first = await work.add(database.pool, letter)
    assert first is not None
    async with database.pool.acquire() as ingest, ingest.transaction():
        assert await work.add(ingest, letter) is None  # it waits already; its turn is not committed yet
        assert await claims.due(database.pool, terms(letter), 10) == []
        assert await claims.rung(database.pool, terms(letter), [Rung(first.id, first.epoch)], 10) == []
    assert len(await claims.due(database.pool, terms(letter), 10)) == 1


async def test_racing_producers_make_one_row(database: Database, letter: Letter) -> None:
    added = await asyncio.gather(*(work.add(database.pool, letter) for _ in range(50)))
    assert sum(one is not None for one in added) == 1
    assert len(await rows(database, letter)) == 1


async def test_an_aborted_transaction_leaves_no_work(database: Database, letter: Letter) -> None:
    with pytest.raises(RuntimeError):
        await _add_and_fail(database, letter)
    assert await rows(database, letter) == []


async def _add_and_fail(database: Database, letter: Letter) -> None:
    async with database.pool.acquire() as connection, connection.transaction():
        await work.add(connection, letter)
        raise RuntimeError


async def test_a_letter_survives_the_way_through_the_table(database: Database, letter: Letter) -> None:
    nasty = "log:'; DROP TABLE work; -- \\ “ü” \u202e 🙂"
    payload: dict[str, int | float | str | None] = {"big": 2**53 + 1, "ratio": 0.1, "none": None, "id": "a\u0001b"}
    sent = Letter(letter.kind, "memory", 2**40, nasty + letter.kind, nasty, payload, trace_parent="00-ab-cd-01")
    await work.add(database.pool, sent)
    (claim,) = await claims.due(database.pool, terms(letter), 1)
    assert (claim.space_id, claim.scope, claim.payload) == (2**40, nasty + letter.kind, payload)
    assert (claim.trace_parent, claim.attempt, claim.crashes, claim.waits) == ("00-ab-cd-01", 1, 0, 0)
