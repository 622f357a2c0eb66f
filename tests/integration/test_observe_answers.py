"""What the observer makes of each thing that a model server can answer: nothing is lost, nothing is noted twice."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gateways.scripted_behaviour import Asked
from jobs.verdict import Done, Later

Opened = Callable[..., Any]

ASKED_AGAIN = ("babble", "empty", "refusal", "filtered", "loop")
TOO_MUCH = ("truncated", "exhausted", "context_too_long")
PASSING = (
    ("server_error", "provider_error"),
    ("garbage", "provider_error"),
    ("closed", "provider_error"),
    ("unauthorized", "provider_error"),
    ("unavailable", "provider_error"),
    ("error_in_200", "rate_limit"),
    ("rate_limited", "rate_limit"),
    ("gateway_timeout", "timeout"),
    ("hanging", "timeout"),
)


@pytest.mark.parametrize(
    "behaviour", ["good", "slow", "fenced", "prose", "in_parts", "wrong_type", "no_json_schema", "no_formats"]
)
async def test_an_answer_of_use_is_observed_at_once_whatever_stands_around_it(opened: Opened, behaviour: str) -> None:
    async with opened({"play": behaviour, "seconds": 0.05}) as book:
        words = await book.say_words(5)
        assert isinstance(await book.run(), Done)
        await book.assert_each_noted_once(words)


@pytest.mark.parametrize("behaviour", ASKED_AGAIN)
async def test_an_answer_of_no_use_is_asked_for_again_with_what_was_wrong(opened: Opened, behaviour: str) -> None:
    async with opened([behaviour, "good"]) as book:
        words = await book.say_words(5)
        assert isinstance(await book.run(), Done)
        first, second = (asked.user for asked in book.model.asked)
        assert second.startswith(first)
        assert second.removeprefix(first).startswith("\n# Your last answer ")
        await book.assert_each_noted_once(words)


@pytest.mark.parametrize("behaviour", TOO_MUCH)
async def test_an_answer_that_breaks_off_means_fewer_turns_at_once(opened: Opened, behaviour: str) -> None:
    async with opened([behaviour, "good"]) as book:
        words = await book.say_words(6)
        assert await book.run_until_idle() == [Done(), Done()]
        shares = [[word for word in words if word in asked.user] for asked in book.model.asked]
        assert shares[0] == words
        assert 0 < len(shares[1]) < 6  # the first answer, cut in the middle, was not taken for all there is
        assert shares[1] == words[: len(shares[1])]
        await book.assert_each_noted_once(words)


@pytest.mark.parametrize("behaviour", [*ASKED_AGAIN, *TOO_MUCH])
async def test_a_turn_that_spoils_every_answer_is_set_aside_alone_with_its_attempts(
    opened: Opened, behaviour: str
) -> None:
    async with opened("good") as book:
        words = await book.say_words(8)
        bad = words[4]
        book.model.play(lambda asked: behaviour if bad in asked.user else "good")
        verdicts = await book.run_until_idle()
        assert all(verdict.counts for verdict in verdicts if isinstance(verdict, Later))

        (held,) = await book.quarantine()
        alone = next(turn for turn in await book.turns() if turn.state == "quarantined")
        assert (held.turn_id, held.reason) == (alone.id, alone.reason)
        assert bad in (await book.texts())[alone.seq - 1]
        assert len(held.attempts) >= 3
        assert {attempt["outcome"] for attempt in held.attempts} == {held.reason}
        assert (await book.coverage())["turns"] | {"pending": 0, "observed": 7, "quarantined": 1} == (
            await book.coverage()
        )["turns"]
        assert sorted(line.text for line in await book.lines()) == sorted(
            f"{word} came up" for word in words if word != bad
        )
        assert await book.answers_kept() == 0


async def test_three_spaced_tries_stand_between_a_turn_and_the_quarantine(opened: Opened) -> None:
    async with opened("babble") as book:
        await book.say_words(1)
        for attempt in (1, 2):
            claim = await book.claim()
            verdict = await book.run(claim=claim)
            assert claim.attempt == attempt
            assert verdict == Later(None, "unparsable", counts=True)
            assert await book.states() == {"pending": 1}
            assert (await book.coverage())["last_error"]["code"] == "unparsable"
            assert "of no use (unparsable)" in (await book.coverage())["why_not_yet"]
        assert isinstance(await book.run(), Done)
        (held,) = await book.quarantine()
        assert [attempt["outcome"] for attempt in held.attempts] == ["unparsable"] * 6


async def test_a_server_that_is_well_again_before_the_third_try_loses_no_turn(opened: Opened) -> None:
    async with opened("babble") as book:
        words = await book.say_words(3)
        await book.run()
        await book.heal()
        await book.run_until_idle()
        await book.assert_each_noted_once(words)


@pytest.mark.parametrize(("behaviour", "outcome"), PASSING)
async def test_what_passes_by_itself_costs_no_attempt_and_quarantines_nothing(
    opened: Opened, behaviour: str, outcome: str
) -> None:
    patience = timedelta(milliseconds=300) if behaviour == "hanging" else timedelta(seconds=20)
    async with opened({"play": behaviour, "seconds": 0.5}, model_timeout=patience) as book:
        words = await book.say_words(2)
        for _ in range(3):
            verdict = await book.run()
            assert isinstance(verdict, Later)
            assert not verdict.counts
            assert verdict.error in (outcome, "paced")
        assert (await book.work("ready"))[0].attempt == 0
        assert await book.states() == {"pending": 2}
        assert await book.quarantine() == []
        assert (await book.coverage())["last_error"]["code"] in (outcome, "paced")
        await book.heal()
        await book.run_until_idle()
        await book.assert_each_noted_once(words)
        assert (await book.coverage())["last_error"] is None


async def test_an_outage_longer_than_all_retries_loses_nothing(opened: Opened) -> None:
    async with opened("server_error") as book:
        words = await book.say_words(4)
        for _ in range(60):
            verdict = await book.run()
            assert isinstance(verdict, Later)
            assert not verdict.counts
        assert book.model.count < 30  # the circuit opened: a server that is down is left alone
        assert (await book.work("ready"))[0].attempt == 0
        await book.heal()
        await book.run_until_idle()
        await book.assert_each_noted_once(words)


async def test_retry_after_is_obeyed_by_every_worker(opened: Opened) -> None:
    async with opened({"play": "rate_limited", "retry_after": "7"}) as book, opened("good", key=book.key) as other:
        await book.say_words(1)
        assert await book.run() == Later(7.0, "rate_limit", counts=False)
        (waiting,) = await book.work("ready")
        assert 6 < (waiting.run_at - (await book.log()).last_error_at).total_seconds() < 8
        assert "the model server answers rate_limit, next try in" in (await book.coverage())["why_not_yet"]
        book.model.play("good")
        verdict = await book.run()  # somebody who looks too early
        assert isinstance(verdict, Later)
        assert verdict.error == "paced"
        assert 0 < verdict.seconds <= 7
        assert book.model.count == 1
        assert other.model.count == 0


async def test_the_cheap_model_is_asked_for_by_name(opened: Opened) -> None:
    async with opened("good", memory_worker_model="tiny-and-cheap:v2") as book:
        await book.say_words(1)
        await book.run()
        assert [asked.body["model"] for asked in book.model.asked] == ["tiny-and-cheap:v2"]


async def test_past_the_daily_cap_work_waits_visibly_and_goes_on_the_next_day(opened: Opened) -> None:
    async with opened("good", model_daily_tokens=10) as book:
        first = await book.say_words(2)
        await book.run()
        second = await book.say_words(2)
        verdict = await book.run()
        assert verdict == Later(900.0, "daily_cap", counts=False)
        assert book.model.count == 1
        coverage = await book.coverage()
        assert coverage["last_error"]["code"] == "daily_cap"
        assert "tokens for today are used up" in coverage["why_not_yet"]
        assert coverage["turns"]["pending"] == 2
        await book.write("UPDATE model_usage SET created_at = created_at - interval '1 day'")
        await book.run_until_idle()
        await book.assert_each_noted_once(first + second)


async def test_what_the_model_cost_is_on_record(opened: Opened) -> None:
    from models.model_usage import ModelUsage

    async with opened(["rate_limited", "good"]) as book:
        await book.say_words(1)
        await book.run()
        await book.heal()
        await book.run()
        refused, paid = await book.rows(ModelUsage)
        assert (refused.outcome, refused.input_tokens) == ("rate_limit", 0)
        assert (paid.outcome, paid.job) == ("ok", "observe")
        assert paid.input_tokens > paid.cached_tokens > 0
        assert paid.output_tokens > 0


async def test_an_operator_sends_a_turn_back_and_it_is_observed_once_at_the_end_of_its_log(opened: Opened) -> None:
    async with opened("good") as book:
        words = await book.say_words(5)
        book.model.play(lambda asked: "babble" if words[1] in asked.user else "good")
        await book.run_until_idle()
        (held,) = await book.quarantine()
        later = await book.say_words(1)
        await book.heal()

        path = f"/v1/quarantine/{held.id}/retry"
        answer = await book.client.post(path, headers=book.key.headers)
        assert answer.status_code == 202
        assert (await book.client.post(path, headers=book.key.headers)).status_code == 409
        *_, last = await book.turns()
        assert (last.id, last.state) == (held.turn_id, "pending")
        await book.run_until_idle()
        await book.assert_each_noted_once(words + later)
        assert await book.quarantine() == []


async def test_half_characters_and_nothings_in_an_answer_reach_no_store(opened: Opened) -> None:
    odd = r'{"observations": [{"text": "a\ud83d half\u0000 and \udc00 more", "kind": "event", "priority": "low",'
    odd += r' "evidence": [1], "refers_to": null, "replaces": null}]}'

    def answer(_: Asked) -> str:
        return odd

    async with opened("good", answer=answer) as book:
        await book.say("hello there")
        await book.run_until_idle()
        assert await book.states() == {"observed": 1}
        for line in await book.lines():
            line.text.encode()
            assert "\0" not in line.text
