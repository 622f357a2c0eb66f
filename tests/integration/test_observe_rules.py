"""When turns are observed, in which portions, and which never: the settings act as they say."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobs.verdict import Done, Later
from memory import tokens
from tests.integration.logbook import Book, token

Opened = Callable[..., Any]


async def due_now(book: Book) -> bool:
    pool = book.resources.database.pool
    query = "SELECT bool_or(run_at <= now()) FROM work WHERE space_id = $1 AND state = 'ready' AND kind = 'observe'"
    return bool(await pool.fetchval(query, book.space))


def asked_about(book: Book) -> str:
    """Everything that ever reached the model server."""
    assert book.model is not None
    return "\n".join(str(asked.body) for asked in book.model.asked)


async def test_eight_thousand_tokens_wait_and_one_more_is_due_now(opened: Opened) -> None:
    async with opened() as book:
        word = " hello"
        assert tokens.count(word * 1_000) == 1_000
        for _ in range(7):
            said = await book.say(word * 1_000)
        said = await book.say(word * 1_000)
        assert said["pending_tokens"] == 8_000
        assert said["observer"]["threshold"] == 8_000
        assert said["observer"]["due"] is False
        assert not await due_now(book)
        said = await book.say("hello")
        assert said["pending_tokens"] == 8_001
        assert said["observer"]["due"] is True
        assert await due_now(book)


async def test_the_threshold_is_the_one_that_is_set(opened: Opened) -> None:
    async with opened(observer_threshold=100) as book:
        assert (await book.say(" hello" * 100))["observer"] | {"flush_at": None} == {
            "due": False,
            "threshold": 100,
            "flush_at": None,
        }
        assert not await due_now(book)
        assert (await book.say("hello"))["observer"]["due"] is True
        assert await due_now(book)


async def test_a_chat_of_three_turns_that_nobody_continues_is_flushed_by_age(opened: Opened) -> None:
    async with opened("good") as book:
        words = [token() for _ in range(3)]
        said = await book.say(*(f"I have {word}" for word in words))
        assert not await due_now(book)
        (waiting,) = await book.work("ready")
        log = await book.log()
        assert waiting.run_at - log.oldest_pending_at == timedelta(minutes=30)
        assert said["observer"]["due"] is False
        assert "of 8,000 tokens; flush by age in 30 min" in (await book.coverage())["why_not_yet"]
        await book.run()  # half an hour later
        assert [line.text for line in await book.lines()] == [f"{word} came up" for word in words]
        assert (await book.coverage())["why_not_yet"] == "nothing is pending"


async def test_whoever_asks_has_what_is_pending_observed_now(opened: Opened) -> None:
    async with opened("good", model_window=2_000, model_max_output=200) as book:
        words = [token() for _ in range(40)]
        await book.say(*(f"I have {word} {' and so on' * 20}" for word in words))
        assert not await due_now(book)
        await book.post("/v1/observations/flush")
        runs = 0
        while await due_now(book):  # several batches, each due at once
            assert isinstance(await book.run(), Done)
            runs += 1
        assert runs > 3
        assert await book.states() == {"observed": 40}
        assert sorted(line.text for line in await book.lines()) == sorted(f"{word} came up" for word in words)


async def test_a_turn_larger_than_the_threshold_is_observed_whole(opened: Opened) -> None:
    async with opened("good", observer_threshold=50) as book:
        words = [token() for _ in range(60)]
        await book.say("\n".join(f"I bought {word} yesterday." for word in words))
        assert isinstance(await book.run(), Done)
        assert book.model.count == 1
        assert all(word in book.model.asked[0].user for word in words)
        assert await book.states() == {"observed": 1}
        assert {alias for line in await book.lines() for alias in line.evidence} == {(await book.turns())[0].id}


async def test_a_turn_larger_than_the_window_is_observed_in_parts_that_hold_all_of_it(opened: Opened) -> None:
    async with opened("good", model_window=2_000, model_max_output=200) as book:
        words = [token() for _ in range(300)]
        await book.say(*(f"Before, {token()}.", " ".join(f"I bought {word} yesterday." for word in words), "After."))
        await book.run_until_idle()
        assert await book.states() == {"observed": 3}
        assert await book.quarantine() == []
        assert book.model.count > 3
        seen = asked_about(book)
        assert all(word in seen for word in words)
        long = (await book.turns())[1]
        noted = " ".join(line.text for line in await book.lines() if line.evidence == (long.id,))
        assert all(word in noted for word in words)


@pytest.mark.parametrize("thinks", ["a model", "the built-in"])
async def test_a_thousand_turns_of_one_word_are_few_questions(opened: Opened, thinks: str) -> None:
    async with opened("good" if thinks == "a model" else None) as book:
        words = [token() for _ in range(1_000)]
        for first in (0, 500):
            await book.say(*words[first : first + 500])
        runs = await book.run_until_idle()
        assert await book.states() == {"observed": 1_000}
        assert (await book.log()).pending_tokens == 0
        assert len(runs) <= 6
        if book.model is not None:
            assert sorted(line.text for line in await book.lines()) == sorted(f"{word} came up" for word in words)


async def test_a_tool_call_never_stands_in_another_question_than_its_result(opened: Opened) -> None:
    async with opened("good", model_window=2_000, model_max_output=200) as book:
        pairs = []
        for at in range(12):
            call, result = token(), token()
            pairs.append((call, result))
            function = {"name": "look_up", "arguments": f'{{"what": "{call}"}}'}
            await book.say(
                f"Please look it up{' and so on' * (10 + 7 * at)}",
                {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{at}", "function": function}]},
                {"role": "tool", "content": f"found {result}{' and so on' * 40}", "tool_call_id": f"c{at}"},
            )
        await book.post("/v1/observations/flush")
        await book.run_until_idle()
        assert await book.states() == {"observed": 36}
        assert book.model.count > 3
        for call, result in pairs:
            places = [
                [at for at, asked in enumerate(book.model.asked) if word in asked.user.partition("# Turns")[2]]
                for word in (call, result)
            ]
            assert places[0] == places[1]
            assert len(places[0]) == 1


async def test_what_must_not_be_remembered_and_what_operators_say_never_reaches_a_model(opened: Opened) -> None:
    async with opened("good") as book:
        secret, system, developer, kept = (token() for _ in range(4))
        await book.say(f"Off the record: {secret}", no_memory=True)
        await book.say(
            {"role": "system", "content": f"You are {system}"},
            {"role": "developer", "content": f"Mind {developer}"},
            f"I have {kept}",
            {"role": "assistant", "content": None},
        )
        await book.run_until_idle()
        seen = asked_about(book)
        assert kept in seen
        assert not [word for word in (secret, system, developer) if word in seen]
        assert [(turn.state, turn.reason) for turn in await book.turns()] == [
            ("skipped", "no_memory"),
            ("skipped", "role"),
            ("skipped", "role"),
            ("observed", None),
            ("skipped", "empty"),
        ]
        assert [line.text for line in await book.lines()] == [f"{kept} came up"]


async def test_with_memory_off_nothing_is_observed_nothing_is_deleted_and_nothing_is_made_up_for_later(
    opened: Opened,
) -> None:
    async with opened("good") as on, opened("good", key=on.key, observational_memory=False) as off:
        before, waiting, meanwhile, after = (token() for _ in range(4))
        await on.say(f"I have {before}")
        await on.run_until_idle()
        await on.say(f"I have {waiting}")

        await off.say(f"I have {meanwhile}")
        verdict = await off.run()
        assert isinstance(verdict, Later)
        assert (verdict.error, verdict.counts) == ("memory_off", False)
        assert off.model.count == 0
        assert [turn.state for turn in await off.turns()] == ["observed", "pending", "skipped"]
        assert len(await off.lines()) == 1
        assert (await off.post("/v1/observations/read"))["block"] == ""

        await on.say(f"I have {after}")
        await on.run_until_idle()
        assert [(turn.state, turn.reason) for turn in await on.turns()] == [
            ("observed", None),
            ("observed", None),
            ("skipped", "memory_off"),
            ("observed", None),
        ]
        assert meanwhile not in asked_about(on)
        assert [line.text for line in await on.lines()] == [f"{word} came up" for word in (before, waiting, after)]


async def test_two_people_of_one_agent_never_share_a_question_or_a_line(opened: Opened) -> None:
    async with opened("good") as ana, opened("good") as bob:
        mine, theirs = token(), token()
        await ana.say(f"I have {mine}", conversation="same")
        await bob.say(f"I have {theirs}", conversation="same")
        await ana.run_until_idle()
        await bob.run_until_idle()
        assert theirs not in asked_about(ana)
        assert mine not in asked_about(bob)
        assert [line.text for line in await ana.lines()] == [f"{mine} came up"]


async def test_the_log_tells_the_next_question_what_it_says_already(opened: Opened) -> None:
    async with opened("good") as book:
        first = token()
        await book.say(f"I have {first}")
        await book.run_until_idle()
        await book.say(f"As I said, {first}", f"and {token()}")
        await book.run_until_idle()
        assert "\nL1 " in book.model.asked[1].user
        assert f"{first} came up" in book.model.asked[1].user.partition("# Turns")[0]
        assert [line.text for line in await book.lines()].count(f"{first} came up") == 1  # said again, noted once
        assert await book.states() == {"observed": 3}


async def test_a_backlog_of_long_turns_is_not_read_whole_for_one_batch(opened: Opened) -> None:
    from jobs.observe import _read

    async with opened() as book:
        for at in range(6):
            await book.say(*[" hello" * 1_000] * 20, conversation=f"c-{at}")
        pending = await _read(await book.claim(), book.workshop)
        assert pending is not None
        assert 8 < len(pending.turns) < 90
