"""The chaos run in its short form, and how soon a dead worker's work runs again. Longer: `python -m tests.chaos.storm`."""

import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.chaos.deployment import Deployment, deployed, eventually
from tests.chaos.storm import brewing

CLAIM = 10.0  # seconds


@pytest.fixture(scope="module")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    async with deployed(tmp_path_factory.mktemp("chaos")) as running:
        yield running


async def claimed(pool: Any) -> list[Any]:
    """Who holds what, and since when; this claim was never renewed where it was just had."""
    rows: list[Any] = await pool.fetch(
        "SELECT id, epoch, owner, claimed_until - make_interval(secs => $1) AS at FROM work"
        " WHERE state = 'claimed' ORDER BY id",
        CLAIM,
    )
    return rows


async def test_work_of_a_worker_that_was_killed_runs_again_within_one_and_a_fifth_claims(
    deployment: Deployment,
) -> None:
    usual = deployment.workers
    for worker in usual:
        worker.send(signal.SIGTERM)
        await worker.ended()
    patient = {"AFTERTURN_WORKER_CLAIM": f"{CLAIM:.0f}s", "AFTERTURN_MODEL_TIMEOUT": "120s"}
    workers = [deployment.program(f"patient-{at}", "scheduler.__main__", "worker", **patient) for at in range(2)]
    for worker in workers:
        worker.start()
    await deployment.play("hanging")
    async with brewing(deployment, 0, ("calm",)) as storm:
        pool = storm.resources.database.pool

        for person in range(6):
            turns = [{"role": "user", "content": "I live in Porto, by the river, " + "and so on, " * 40}]
            body = {"agent": "recovery", "conversation_id": "a", "turns": turns}
            await storm.insist("/v1/turns", body, storm.backends[0].of(f"patient-{person}"))
        held = await eventually(lambda: claimed(pool), lambda rows: len(rows) == 6, 30)
        victim = held[0]["owner"]
        mine = {row["id"]: row["epoch"] for row in held if row["owner"] == victim}
        killed = await pool.fetchval("SELECT clock_timestamp()")
        os.kill(int(victim.split(":")[1]), signal.SIGKILL)

        def taken_over(rows: list[Any]) -> bool:
            return {row["id"] for row in rows if row["owner"] != victim} >= set(mine)

        rows = await eventually(lambda: claimed(pool), taken_over, 3 * CLAIM)
        ratios = [(row["at"] - killed).total_seconds() / CLAIM for row in rows if row["id"] in mine]
        assert {row["id"]: row["epoch"] - 1 for row in rows if row["id"] in mine} == mine
        assert max(ratios) <= 1.2, ratios
        assert min(ratios) > 0.5, "nobody may take work whose claim has not ended"
    await deployment.play("good")
    for worker in workers:
        worker.send(signal.SIGKILL)
        await worker.ended()
    for worker in usual:
        worker.start()


async def test_after_a_storm_every_turn_is_in_one_state_and_noted_once(deployment: Deployment) -> None:
    async with brewing(deployment, seed=1) as storm:
        await storm.rage(seconds=0)
        await storm.calm_down()
        wrong, books = await storm.findings()
        assert wrong == []
        accepted = sum(map(len, storm.ledger.accepted.values()))
        assert accepted > 100
        assert sum(one.states["observed"] for one in books) > 0.9 * accepted

        await storm.send_back_the_quarantined()
        await storm.calm_down()
        wrong, books = await storm.findings()
        assert wrong == []
        assert sum(one.states["observed"] for one in books) == accepted

        effects = await storm.effects()
        assert effects["crashes"] > 0, effects  # the storm was one
