"""Work that waits for a time that changed settings have made the wrong one is pulled forward; what failed is not."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jobs.letters import observe_letter
from models import append, work
from models.append import LogName
from models.database import driver
from models.log import Rhythm
from models.work import Added
from scheduler.attention import Attention

if TYPE_CHECKING:
    from conftest import Mint

    from jobs.resources import Resources

SHORT, LONG = Rhythm(1_000, timedelta(minutes=5)), Rhythm(1_000, timedelta(hours=6))


class Waits(NamedTuple):
    """A log with pending turns that came ten minutes ago, and when its work runs, in seconds from now."""

    log_id: int
    resources: "Resources"

    async def runs_in(self) -> float:
        query = "SELECT run_at - now() FROM work WHERE dedup = $1 AND state = 'ready'"
        left: timedelta = await self.resources.database.pool.fetchval(query, f"log:{self.log_id}")
        return left.total_seconds()

    async def attended(self, pace: Rhythm | None) -> list[Added]:
        walks = Attention(self.resources.database, pace, _after=self.log_id - 1)
        return [one for one in await walks.attend() if one.id == await self._work()]

    async def _work(self) -> int:
        query = "SELECT id FROM work WHERE dedup = $1 AND state = 'ready'"
        number: int = await self.resources.database.pool.fetchval(query, f"log:{self.log_id}")
        return number


@pytest.fixture
async def waits(resources: "Resources", mint: "Mint") -> AsyncIterator[Waits]:
    key = await mint()
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        names = [LogName(key.owner, "support", "corporate")]
        log_id = next(iter((await append.lock_logs(connection, key.space, names)).values())).id
        came: datetime = await connection.fetchval(
            "UPDATE logs SET pending_turns = 3, pending_tokens = 30, oldest_pending_at = now() - interval '10 min'"
            " WHERE id = $1 RETURNING oldest_pending_at",
            log_id,
        )
        await work.add(connection, observe_letter(key.space, log_id), came + LONG.max_age)
    yield Waits(log_id, resources)
    # There is no such turn: nobody else's worker is to look for it.
    await resources.database.pool.execute("DELETE FROM work WHERE dedup = $1", f"log:{log_id}")
    async with resources.database.begin(key.space) as tx:
        await (await driver(tx)).execute("UPDATE logs SET pending_turns = 0, pending_tokens = 0 WHERE id = $1", log_id)


async def test_a_shorter_age_pulls_what_waits_by_the_old_one_forward(waits: Waits) -> None:
    assert await waits.attended(LONG) == []
    assert await waits.runs_in() > 5 * 3600
    pulled = await waits.attended(SHORT)
    assert [one.due for one in pulled] == [True]
    assert await waits.runs_in() <= 0
    assert await waits.attended(SHORT) == []


async def test_it_is_pulled_to_when_it_is_due_and_no_further(waits: Waits) -> None:
    pulled = await waits.attended(Rhythm(1_000, timedelta(minutes=30)))
    assert [one.due for one in pulled] == [False]
    assert 19 * 60 < await waits.runs_in() <= 20 * 60


async def test_a_lower_threshold_makes_it_due_now(waits: Waits) -> None:
    await waits.attended(Rhythm(29, LONG.max_age))
    assert await waits.runs_in() <= 0


@pytest.mark.parametrize(("error", "pulled"), [("memory_off", 1), ("provider_error", 0), ("daily_cap", 0)])
async def test_what_waited_for_memory_is_pulled_and_what_failed_keeps_its_time(
    waits: Waits, error: str, pulled: int
) -> None:
    await waits.resources.database.pool.execute(
        "UPDATE work SET last_error = $2, run_at = now() + interval '15 min' WHERE dedup = $1",
        *(f"log:{waits.log_id}", error),
    )
    assert await waits.attended(None) == []  # memory is off
    assert len(await waits.attended(SHORT)) == pulled
