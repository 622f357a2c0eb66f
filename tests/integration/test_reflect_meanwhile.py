"""A rewrite that dies, comes too late or meets others on its way: one commit, or none of it."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from jobs.reflect import _write
from jobs.verdict import Done, Later
from models.observation import Generation, Observation
from models.work import Superseded
from tests.integration.logbook import Book, Shelf, token

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Has something happen between a reflection's answer and its commit."""

    def set_up(happens: Any) -> None:
        async def write(*handed: Any) -> Any:
            await happens()
            return await _write(*handed)

        monkeypatch.setattr("jobs.reflect._write", write)

    return set_up


async def grown(book: Book, lines: int = 40) -> list[str]:
    """So many lines in the log, from as many turns."""
    words = [token() for _ in range(lines)]
    await book.say(*(f"My parcel is {word}" for word in words))
    assert isinstance(await book.run("observe"), Done)
    return words


async def grown_past_threshold(book: Book) -> list[str]:
    words: list[str] = []
    while "reflect" not in await book.waiting():
        words += await grown(book, 3)
    return words


async def rows(book: Book, generation: int) -> list[Observation]:
    return [row for row in await book.rows(Observation) if row.generation == generation]


def words_of(lines: list[Any]) -> list[str]:
    return sorted(word for line in lines for word in re.findall(r"tok-\w+", line.text))


async def test_what_is_observed_meanwhile_is_carried_over(opened: Opened, meanwhile: Any) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        late: list[str] = []

        async def observed_beside_it() -> None:
            await book.write(
                "UPDATE work SET scope = 'another' WHERE state = 'claimed' AND kind = 'reflect' AND space_id = $1",
                book.space,
            )
            late.extend(await grown(book, 3))

        meanwhile(observed_beside_it)
        await book.run("reflect")
        carried = [row for row in await rows(book, 2) if len(row.sources) == 1 and len(row.evidence) == 1]
        assert (await book.log()).generation == 2
        assert words_of(await book.lines()) == sorted([*words, *late])
        assert words_of(await book.lines(1)) == sorted([*words, *late])
        assert len(carried) >= 3


@pytest.mark.parametrize("behaviour", ["server_error", "rate_limited", "unauthorized", "closed"])
async def test_a_server_that_is_away_delays_a_rewrite_and_spoils_none(opened: Opened, behaviour: str) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        book.model.play(behaviour)
        for _ in range(4):
            verdict = await book.run("reflect")
            assert isinstance(verdict, Later)
            assert not verdict.counts
        assert (await book.log()).generation == 1
        assert (await book.log()).failed_reflection is None
        await book.heal()
        await book.run_until_idle()
        assert (await book.log()).generation == 2
        assert words_of(await book.lines()) == sorted(words)


async def test_a_worker_that_dies_after_the_answer_leaves_it_for_the_next(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: Any) -> None:
        raise asyncio.CancelledError

    async with opened("good", reflector_threshold=215) as book:
        await grown(book)
        claim, asked = await book.claim("reflect"), book.model.count
        with monkeypatch.context() as patched:
            patched.setattr("jobs.reflect._write", dies)
            with pytest.raises(asyncio.CancelledError):
                await book.run(claim=claim)
        await book.crash(claim)
        assert await book.run("reflect") == Done()
        assert book.model.count == asked + 1
        assert (await book.log()).generation == 2


async def test_a_rewrite_of_a_log_that_was_restored_meanwhile_is_thrown_away(opened: Opened, meanwhile: Any) -> None:
    async with opened("good", reflector_threshold=400) as book:
        words = await grown_past_threshold(book)
        await book.run("reflect")
        more = await grown_past_threshold(book)

        async def an_operator_restores() -> None:
            await book.post("/v1/observations/restore", {"generation": 1})

        meanwhile(an_operator_restores)
        assert await book.run("reflect") == Done()
        assert (await book.log()).generation == 3
        assert words_of(await book.lines()) == sorted([*words, *more])


async def test_a_rewrite_of_a_log_that_was_deleted_meanwhile_writes_nothing(opened: Opened, meanwhile: Any) -> None:
    async with opened("good", reflector_threshold=215) as book:
        await grown(book)
        meanwhile(book.delete_log)
        assert await book.run("reflect") == Done()
        assert await book.rows(Observation) == []
        assert await book.rows(Generation) == []


async def test_a_rewrite_whose_claim_was_taken_over_writes_nothing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        paused = await book.claim("reflect")

        async def wakes_up_late(*handed: Any) -> Any:
            monkeypatch.setattr("jobs.reflect._write", _write)
            await book.crash(paused)
            await book.run("reflect")
            return await _write(*handed)

        monkeypatch.setattr("jobs.reflect._write", wakes_up_late)
        with pytest.raises(Superseded):
            await book.run(claim=paused)
        assert (await book.log()).generation == 2
        assert words_of(await book.lines()) == sorted(words)
