"""A log that grew too large is rewritten: as a proposal that must prove itself, in one commit, with the old one kept."""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from gateways.scripted_behaviour import Asked
from gateways.scripted_echo import echo
from jobs.verdict import Done, Later, Nothing
from models.observation import Generation, Observation
from tests.integration.logbook import Book, Shelf, token

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


def reflecting(answer: Callable[[str], Any]) -> Callable[[Asked], str]:
    """Notes turns as ever; asked about a log it says what `answer` makes of it."""
    return lambda asked: echo(asked) if "\n# Turns" in asked.user else json.dumps({"changes": answer(asked.user)})


async def grown(book: Book, lines: int = 40) -> list[str]:
    """So many lines in the log, from as many turns."""
    words = [token() for _ in range(lines)]
    await book.say(*(f"My parcel is {word}" for word in words))
    assert isinstance(await book.run("observe"), Done)
    return words


async def rows(book: Book, generation: int) -> list[Observation]:
    return [row for row in await book.rows(Observation) if row.generation == generation]


def words_of(lines: list[Any]) -> list[str]:
    return sorted(word for line in lines for word in re.findall(r"tok-\w+", line.text))


async def test_a_log_is_due_for_rewriting_when_it_passes_its_threshold_and_not_before(opened: Opened) -> None:
    async with opened("good", reflector_threshold=215) as book:
        await grown(book, 20)
        while (await book.log()).live_tokens <= 215:
            assert await book.waiting() == []
            await grown(book, 1)
        assert await book.waiting() == ["reflect"]


async def test_the_default_threshold_is_thirty_two_thousand_tokens(settings: Any) -> None:
    assert settings.memory.reflector_threshold == 32_000


async def test_a_valid_rewrite_is_a_new_generation_and_the_old_one_stays(opened: Opened) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        old = await book.lines()
        assert await book.run("reflect") == Done()
        log, new = await book.log(), await book.lines()
        assert log.generation == 2
        assert await book.lines(1) == old
        assert words_of(new) == sorted(words)
        assert len(new) < len(old)
        assert log.live_tokens == sum(line.tokens for line in new) < 215
        assert [(one.number, one.made_by, one.parent) for one in await book.rows(Generation)] == [
            (1, "observe", None),
            (2, "reflect", 1),
        ]
        assert await book.answers_kept() == 0
        assert await book.states() == {"observed": 40}


async def test_a_rewritten_line_keeps_the_evidence_and_the_age_of_its_sources(opened: Opened) -> None:
    async with opened("good", reflector_threshold=215) as book:
        await grown(book, 20)
        await book.write("UPDATE observations SET born_at = born_at - interval '90 days' WHERE id % 5 = 0")
        await grown(book, 20)
        await book.run("reflect")
        before = {row.id: row for row in await rows(book, 1)}
        after = await rows(book, 2)
        assert {source for row in after for source in row.sources} == set(before)
        for row in after:
            sources = [before[source] for source in row.sources]
            assert row.evidence == sorted({turn for source in sources for turn in source.evidence})
            assert row.born_at == min(source.born_at for source in sources)
            assert row.observed_at == min(source.observed_at for source in sources)


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: [],
        lambda _: [{"from": [1, 2], "text": "something else", "why": None}],
        lambda data: [{"from": [at], "text": None, "why": "superseded"} for at in range(1, data.count("\n"))],
        lambda _: [{"from": [900], "text": "tok-forged", "why": None}],
        lambda _: "nothing",
    ],
    ids=["nothing", "lost words", "each superseded", "unknown lines", "no list"],
)
async def test_where_no_rewrite_is_valid_the_old_log_stays_and_the_failure_is_seen(
    opened: Opened, answer: Callable[[str], Any]
) -> None:
    async with opened("good", answer=reflecting(answer), reflector_threshold=300) as book:
        await grown(book, 60)
        old, asked = await book.lines(), book.model.count
        assert await book.run("reflect") == Done()
        assert book.model.count - asked == 4  # each level asked once
        goals = [one.user.splitlines()[-1] for one in list(book.model.asked)[-4:]]
        assert len(set(goals)) == 4
        assert (await book.log()).generation == 1
        assert await book.lines() == old
        assert (await book.coverage())["last_error"]["code"] == "no_valid_reflection"

        # The same input is not tried again, nor one that is hardly larger; until one holds the failure stays to be seen.
        await book.write(
            "UPDATE work SET state = 'ready', finished_at = NULL WHERE kind = 'reflect' AND space_id = $1", book.space
        )
        assert isinstance(await book.run("reflect"), Nothing)
        assert book.model.count - asked == 4
        await grown(book, 1)
        assert isinstance(await book.run("reflect"), Nothing)
        assert (await book.coverage())["last_error"]["code"] == "no_valid_reflection"
        await grown(book, 25)
        book.model._answer = reflecting(lambda _: [{"from": list(range(1, 90)), "text": None, "why": "condensed"}])
        assert await book.run("reflect") == Done()
        assert (await book.log()).generation == 2
        assert (await book.coverage())["last_error"] is None


async def test_a_harder_level_that_holds_is_taken(opened: Opened) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        asked = book.model.count
        book.model.play(["babble", "empty", "refusal", "good"])
        assert await book.run("reflect") == Done()
        assert book.model.count - asked == 4
        assert (await book.log()).generation == 2
        assert words_of(await book.lines()) == sorted(words)


async def test_an_operator_restores_the_old_log_with_what_came_since(opened: Opened) -> None:
    async with opened("good", reflector_threshold=215) as book:
        words = await grown(book)
        old = await book.lines()
        await book.run("reflect")
        late = await grown(book, 2)
        assert (await book.post("/v1/observations/restore", {"generation": 1}))["generation"] == 3
        assert [line.text for line in await book.lines()] == [line.text for line in old] + [
            f"{word} came up" for word in late
        ]
        assert words_of(await book.lines(2)) == sorted([*words, *late])
        await book.run_until_idle()  # it is over its threshold again once something is added, and only then


async def test_a_log_larger_than_the_window_is_rewritten_in_stretches(opened: Opened) -> None:
    async with opened("good", reflector_threshold=1_000, model_window=2_000, model_max_output=200) as book:
        words = [word for _ in range(8) for word in await grown(book, 24)]
        await book.run_until_idle()
        log = await book.log()
        assert log.generation >= 2
        assert log.live_tokens < 1_000
        assert words_of(await book.lines()) == sorted(words)


async def test_thousands_of_lines_are_rewritten_in_one_commit(opened: Opened, remember: Any) -> None:
    async with opened(reflector_threshold=10_000) as book:
        await remember(book.key, *(f"Ana bought {token()} in shop {at}" for at in range(2_300)))
        await book.say("hello")
        await book.run("observe")
        await book.run("reflect")
        log = await book.log()
        assert log.generation == 2
        assert 0 < log.live_tokens < 10_000
        assert len(await book.lines(1)) == 2_300


async def test_the_built_in_reflector_condenses_and_cites(opened: Opened) -> None:
    start = datetime.fromisoformat("2026-01-05T10:00:00+00:00")
    async with opened(reflector_threshold=215) as book:
        for week in range(30):
            at = (start + timedelta(weeks=week)).isoformat()
            turn = f"I moved to house number {week + 3} in Porto yesterday. I bought a bicycle for {1000 + week} euros."
            await book.say({"role": "user", "content": turn, "at": at}, conversation=f"c-{week}")
        await book.post("/v1/observations/flush")
        await book.run_until_idle()
        log = await book.log()
        assert log.generation >= 2
        assert 0 < log.live_tokens <= 215
        parent = {row.id for row in await rows(book, log.generation - 1)}
        for row in await rows(book, log.generation):
            assert row.sources
            assert set(row.sources) <= parent
            assert row.evidence


async def test_a_correction_goes_on_correcting_after_the_rewrite(opened: Opened) -> None:
    def answer(asked: Asked) -> str:
        if "\n# Turns" in asked.user:
            told = json.loads(echo(asked))
            for line in told["observations"]:
                line["replaces"] = "L1" if "this corrects" in asked.user else None
            return json.dumps(told)
        correction, corrected = map(int, re.findall(r"^(\d+).\[replaces (\d+)\]", asked.user, re.MULTILINE)[0])
        others = [at for at in range(1, 42) if at not in {correction, corrected}]
        merged = [others[:20], others[20:]]
        lines = dict(re.findall(r"^(\d+)- (tok-\w+)", asked.user, re.MULTILINE))
        texts = [" ".join(lines[str(at)] for at in each) for each in merged]
        changes = [
            {"from": each, "text": f"{text} came up", "why": None} for each, text in zip(merged, texts, strict=True)
        ]
        return json.dumps({"changes": changes})

    async with opened("good", answer=answer, reflector_threshold=215) as book:
        await grown(book)
        await book.say(f"this corrects: {token()}", conversation="another")
        await book.run("observe")
        correction = (await book.lines())[-1]
        assert correction.supersedes is not None
        await book.run("reflect")
        new = {row.sources[0]: row for row in await rows(book, 2) if len(row.sources) == 1}
        assert new[correction.id].supersedes == new[correction.supersedes].id
        assert len(await book.lines()) == 4


async def test_with_memory_off_a_rewrite_waits(opened: Opened) -> None:
    async with (
        opened("good", reflector_threshold=215) as book,
        opened("good", key=book.key, reflector_threshold=215, observational_memory=False) as off,
    ):
        await grown(book)
        verdict = await off.run("reflect")
        assert isinstance(verdict, Later)
        assert (verdict.error, verdict.counts) == ("memory_off", False)
        assert (await off.log()).generation == 1
        await book.run("reflect")
        assert (await book.log()).generation == 2
