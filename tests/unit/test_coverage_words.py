from datetime import UTC, datetime, timedelta

import pytest

from recall.words import Standing, why_not_yet

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def standing(**changes: object) -> Standing:
    usual: dict[str, object] = {
        "on": True,
        "pending_turns": 3,
        "pending_tokens": 812,
        "threshold": 8_000,
        "due_at": NOW + timedelta(minutes=13, seconds=1),
        "now": NOW,
    }
    return Standing(**(usual | changes))  # type: ignore[arg-type]  # each test names what it changes


def in_s(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "812 of 8,000 tokens; flush by age in 14 min"),
        ({"on": False}, "memory is off"),
        ({"pending_turns": 0, "pending_tokens": 0, "due_at": None}, "nothing is pending"),
        ({"running": "observe"}, "observing now"),
        ({"running": "reflect"}, "waiting: the log is being rewritten"),
        ({"due_at": NOW, "asked": True}, "due (asked for), waiting for a worker"),
        ({"due_at": NOW, "pending_tokens": 9_100}, "due (9,100 of 8,000 tokens), waiting for a worker"),
        ({"due_at": in_s(-5)}, "due (by age), waiting for a worker"),
        ({"due_at": NOW, "trouble": "memory_off", "next_try": in_s(800)}, "due (by age), waiting for a worker"),
        ({"trouble": "memory_off", "next_try": in_s(800)}, "812 of 8,000 tokens; flush by age in 14 min"),
        (
            {"trouble": "rate_limit", "next_try": in_s(39.2)},
            "waiting: the model server answers rate_limit, next try in 40 s",
        ),
        (
            {"trouble": "timeout", "next_try": in_s(120)},
            "waiting: the model server takes too long, next try in 2 min",
        ),
        (
            {"trouble": "daily_cap", "next_try": in_s(900)},
            "this space's tokens for today are used up, next try in 15 min",
        ),
        (
            {"trouble": "unparsable", "next_try": in_s(-1)},
            "waiting: the model's answers are of no use (unparsable), next try now",
        ),
        ({"trouble": "crashed", "next_try": in_s(20)}, "waiting: a worker died over it, next try in 20 s"),
        ({"trouble": "KeyError", "next_try": in_s(1)}, "waiting: the last try failed (KeyError), next try in 1 s"),
        ({"trouble": "rate_limit"}, "waiting: the model server answers rate_limit"),
    ],
)
def test_the_words_say_what_a_log_waits_for(changes: dict[str, object], words: str) -> None:
    assert why_not_yet(standing(**changes)) == words


def test_memory_that_is_off_hides_whatever_else_would_be_said() -> None:
    assert why_not_yet(standing(on=False, running="observe", trouble="rate_limit")) == "memory is off"


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (timedelta(milliseconds=1), "in 1 s"),
        (timedelta(seconds=89), "in 89 s"),
        (timedelta(seconds=90), "in 2 min"),
        (timedelta(minutes=89), "in 89 min"),
        (timedelta(minutes=90), "in 2 h"),
        (timedelta(hours=47), "in 47 h"),
        (timedelta(hours=48), "in 2 days"),
        (timedelta(days=29, seconds=1), "in 30 days"),
        (timedelta(0), "now"),
        (timedelta(seconds=-3), "now"),
    ],
)
def test_a_wait_is_rounded_up_to_a_unit_that_reads_well(wait: timedelta, words: str) -> None:
    said = why_not_yet(standing(trouble="rate_limit", next_try=NOW + wait))
    assert said == f"waiting: the model server answers rate_limit, next try {words}"
