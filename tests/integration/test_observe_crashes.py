"""Runs that die, come too late or meet others on their way: what is committed is committed once, and nothing else is."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from jobs.mind import MindBroke
from jobs.observe import _write
from jobs.verdict import Done, Later
from models.work import Claim, Superseded
from tests.integration.logbook import Book, token

Opened = Callable[..., Any]


async def die_before_the_commit(book: Book, claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has its answers, and ends as a killed worker's does."""
    with monkeypatch.context() as patched:
        patched.setattr("jobs.observe._write", dies)
        with pytest.raises(asyncio.CancelledError):
            await book.run(claim=claim)


async def test_a_worker_that_dies_between_answer_and_commit_leaves_an_answer_that_is_used(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("good") as book:
        words = await book.say_words(5)
        claim = await book.claim()
        await die_before_the_commit(book, claim, monkeypatch)
        assert await book.answers_kept() == 1
        await book.crash(claim)
        assert isinstance(await book.run(), Done)
        assert book.model.count == 1
        await book.assert_each_noted_once(words)


async def test_a_run_that_narrows_and_dies_pays_for_no_question_twice(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(["babble", "babble", "babble", "babble", "good"]) as book:
        words = await book.say_words(8)
        claim = await book.claim()
        await die_before_the_commit(book, claim, monkeypatch)
        asked = book.model.count
        await book.crash(claim)
        assert isinstance(await book.run(), Done)
        assert book.model.count == asked == 5
        await book.run_until_idle()
        await book.assert_each_noted_once(words)


async def test_a_worker_that_dies_before_the_answer_asks_again(opened: Opened) -> None:
    async with opened("hanging") as book:
        words = await book.say_words(5)
        claim = await book.claim()
        run = asyncio.create_task(book.run(claim=claim))
        await book.model.received(1)
        run.cancel()
        await asyncio.wait([run])
        await book.crash(claim)
        await book.heal()
        assert isinstance(await book.run(), Done)
        assert book.model.count == 2
        await book.assert_each_noted_once(words)


@pytest.mark.parametrize("thinks", ["a model", "the built-in"])
async def test_a_turn_that_kills_its_workers_is_halved_away_and_set_aside(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, thinks: str
) -> None:
    async with opened(None if thinks == "the built-in" else "good") as book:
        words = [token() for _ in range(8)]
        await book.say(*(f"I live in {word} Street" for word in words))
        bad = (await book.turns())[5].id
        monkeypatch.setattr("jobs.observe._write", partial(dies_over, bad))
        for _ in range(100):
            if not await book.waiting():
                break
            claim = await book.claim()
            try:
                await book.run(claim=claim)
            except asyncio.CancelledError:
                await book.crash(claim)
        assert await book.states() == {"observed": 7, "quarantined": 1}
        (held,) = await book.quarantine()
        assert (held.turn_id, held.reason) == (bad, "crash")


async def test_a_turn_over_which_our_own_reading_breaks_does_not_hold_up_its_log(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_mind: Any, _rules: Any, turns: Any, _tail: Any) -> list[Any]:
        if any("spoiled" in turn.text for turn in turns):
            raise MindBroke("RecursionError")
        return []

    monkeypatch.setattr("jobs.mind.Mind.think", breaks)
    async with opened() as book:
        await book.say("I live in Porto", "this is spoiled", "I have two cats")
        for _ in range(40):
            if not await book.waiting():
                break
            claim = await book.claim()
            try:
                await book.run(claim=claim)
            except MindBroke as error:
                await book.settle(claim, Later(None, type(error).__name__))
        assert await book.states() == {"observed": 2, "quarantined": 1}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Awaitable[Any]]], None]:
    """Has something happen between a run's answer and its commit, once."""

    def set_up(happens: Callable[[], Awaitable[Any]]) -> None:
        async def write(*handed: Any) -> Any:
            monkeypatch.setattr("jobs.observe._write", _write)
            await happens()
            return await _write(*handed)

        monkeypatch.setattr("jobs.observe._write", write)

    return set_up


async def test_a_run_whose_cursor_was_moved_by_somebody_else_writes_nothing(opened: Opened, meanwhile: Any) -> None:
    async with opened("good") as book:
        await book.say_words(3)
        (first, *_) = await book.turns()

        async def somebody_else() -> None:
            await book.write(
                "UPDATE turns SET state = 'observed', generation = 1 WHERE id = $1",
                first.id,
            )
            await book.write(
                "UPDATE logs SET observed_through = 1, pending_turns = 2, pending_tokens = pending_tokens - $2 WHERE id = $1",
                *(first.log_id, first.tokens),
            )

        meanwhile(somebody_else)
        assert isinstance(await book.run(), Done)
        assert await book.lines() == []
        assert await book.states() == {"observed": 1, "pending": 2}
        log = await book.log()
        assert (log.observed_through, log.pending_turns) == (1, 2)
        assert await book.waiting() == ["observe"]  # what is left is not forgotten
        await book.run_until_idle()
        assert len(await book.lines()) == 2


async def test_a_run_whose_claim_was_taken_over_writes_nothing_and_raises_superseded(
    opened: Opened, meanwhile: Any
) -> None:
    async with opened("good") as book:
        words = await book.say_words(3)
        paused = await book.claim()

        async def others_take_over() -> None:
            await book.crash(paused)
            await book.run()

        meanwhile(others_take_over)
        with pytest.raises(Superseded):
            await book.run(claim=paused)
        await book.assert_each_noted_once(words)


async def test_a_log_that_was_deleted_meanwhile_takes_nothing(opened: Opened, meanwhile: Any) -> None:
    async with opened("good") as book:
        await book.say_words(3)
        meanwhile(book.delete_log)
        assert isinstance(await book.run(), Done)
        from models.observation import Observation
        from models.turn import StoredTurn

        assert await book.rows(Observation) == []
        assert await book.rows(StoredTurn) == []
        assert await book.answers_kept() == 0
        assert await book.waiting() == []
        words = await book.say_words(2)  # the person goes on: a new log with a new id
        await book.run_until_idle()
        await book.assert_each_noted_once(words)


async def test_work_for_a_log_that_is_gone_ends_quietly(opened: Opened) -> None:
    async with opened("good") as book:
        await book.say_words(3)
        await book.delete_log()
        await book.run_until_idle()
        assert book.model.count == 0
        assert await book.waiting() == []


@pytest.mark.parametrize("threshold", [8_000, 5])
async def test_turns_that_come_while_their_log_is_observed_are_observed_next(
    opened: Opened, meanwhile: Any, threshold: int
) -> None:
    async with opened("good", observer_threshold=threshold) as book:
        early = await book.say_words(3)
        late: list[str] = []

        async def goes_on() -> None:
            late.extend(await book.say_words(2))

        meanwhile(goes_on)
        await book.run()
        assert await book.states() == {"observed": 3, "pending": 2}
        assert await book.waiting() == ["observe"]
        (waiting,) = await book.work("ready")
        log = await book.log()
        due = log.oldest_pending_at + book.workshop.rhythm.max_age if threshold == 8_000 else waiting.created_at
        assert abs((waiting.run_at - due).total_seconds()) < 1
        await book.run_until_idle()
        await book.assert_each_noted_once(early + late)


async def test_a_run_that_fails_meets_the_work_that_came_meanwhile_and_becomes_one_with_it(opened: Opened) -> None:
    async with opened("babble") as book:
        words = await book.say_words(1)
        claim = await book.claim()
        await book.post("/v1/observations/flush")
        await book.run(claim=claim)
        assert [row.state for row in await book.work("ready", "merged")] == ["ready", "merged"]
        assert (await book.work("ready"))[0].attempt == 1
        await book.heal()
        await book.run_until_idle()
        await book.assert_each_noted_once(words)  # the merged work's answers are forgotten as well


async def dies(*_: Any) -> Any:
    raise asyncio.CancelledError


async def dies_over(turn_id: int, claim: Any, pending: Any, thought: Any, workshop: Any) -> Any:
    if thought.set_aside is None and any(turn.id == turn_id for turn in thought.turns):
        raise asyncio.CancelledError
    return await _write(claim, pending, thought, workshop)
