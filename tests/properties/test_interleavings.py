"""Whatever the order in which things happen: each accepted turn is in exactly one state, and each is noted once."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.exc import IntegrityError

from jobs.observe import _write as observe_write
from models import log as logs
from models import work
from tests.chaos.accounting import Auditor
from tests.integration.logbook import Shelf
from tests.properties.interleaving import Machine

SEEDS = int(os.environ.get("AFTERTURN_SEEDS", "4"))  # by hand a thousand
TOGETHER = 4
STEPS = 300

Built = Callable[[int], Any]


@pytest.fixture
def built(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Built:
    shelf = Shelf(settings, resources, mint, serving, client)

    @asynccontextmanager
    async def build(seed: int) -> AsyncIterator[Machine]:
        async with AsyncExitStack() as stack:
            space = f"machine-{uuid4().hex}"
            scopes = ("turns:write", "memory:read", "operator")
            keys = [await mint(space, scopes) for _ in range(3)]
            books = [await stack.enter_async_context(shelf.opened(key=key, reflector_threshold=120)) for key in keys]
            auditor = Auditor(resources.database, resources.keys, books[0].space)
            machine = Machine(books, auditor, random.Random(seed))
            try:
                yield machine
            finally:
                for run in machine.runs:
                    run.task.cancel()
                    await asyncio.wait([run.task])

    return build


async def lived_through(built: Built, seed: int) -> Machine:
    """A machine after all its steps, and after everything has come to rest."""
    async with built(seed) as machine:
        for _ in range(STEPS):
            await machine.step()
        await machine.settle()
        return machine


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
async def test_nothing_is_lost_and_nothing_comes_twice(built: Built, first: int) -> None:
    seeds = range(first, min(first + TOGETHER, SEEDS))
    machines = await asyncio.gather(*(lived_through(built, seed) for seed in seeds))
    if first == 0:  # the same seeds go the same ways, and these go everywhere
        seen = sum((machine.seen for machine in machines), Counter[str]())
        wanted = ("observe Done", "observe Later", "reflect Done", "paused", "superseded", "restored")
        assert min(seen[event] for event in wanted) > 0, seen


async def test_the_cursor_alone_keeps_turns_from_coming_twice(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.work.complete", complete_unasked)
    machines = await asyncio.gather(*(lived_through(built, seed) for seed in range(100, 104)))
    assert sum(machine.seen["paused"] for machine in machines) > 0


async def test_the_check_finds_a_cursor_that_is_not_compared(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.work.complete", complete_unasked)
    monkeypatch.setattr("jobs.observe._write", observe_without_looking)
    ends = await asyncio.gather(*(lived_through(built, seed) for seed in range(100, 104)), return_exceptions=True)
    found = [end for end in ends if isinstance(end, BaseException)]
    assert found
    assert all(isinstance(end, AssertionError | IntegrityError) for end in found), found


async def complete_unasked(connection: Any, claim: Any) -> None:
    """As if the claim were still held: a worker that was paused too long writes all the same."""
    await work.complete_held(connection, [claim])


async def observe_without_looking(claim: Any, pending: Any, thought: Any, workshop: Any) -> Any:
    async with workshop.database.begin(claim.space_id) as tx:
        now = await logs.by_id(tx, claim.space_id, pending.log.id)
    pending.log.observed_through = now.observed_through if now else 0
    return await observe_write(claim, pending, thought, workshop)
