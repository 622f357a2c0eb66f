"""Habits, refusals, addresses and small talk, told to an agent: what a careful person would write down."""

from datetime import UTC, date, datetime, timedelta

import pytest

from memory import extractive
from memory.observation import Draft, Interval, Kind, Priority
from memory.turn import Role, Turn

SATURDAY = datetime(2026, 3, 7, 10, tzinfo=UTC)


def observed(*said: str, asked: str | None = None) -> list[Draft]:
    """What a user says, after an agent's question where there is one."""
    each = [(Role.ASSISTANT, asked)] if asked else []
    each += [(Role.USER, text) for text in said]
    turns = [
        Turn(place, 1, role, text or "", SATURDAY + timedelta(seconds=place), len(text or ""))
        for place, (role, text) in enumerate(each, 1)
    ]
    return extractive.observe(turns, [])


def texts(*said: str, asked: str | None = None) -> list[str]:
    return [draft.text for draft in observed(*said, asked=asked)]


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I bake bread on Sunday mornings.", "bakes bread on Sunday mornings"),
        ("I row at the lake every Thursday.", "rows at lake every Thursday"),
        ("Every Thursday I row at the lake.", "every Thursday rows at lake"),
        ("On Tuesdays I row at the lake.", "on Tuesdays rows at lake"),
        ("I visit my aunt every other week.", "visits aunt every other week"),
        ("We pay the gardener every two months.", "pays gardener every two months"),
    ],
)
def test_a_habit_keeps_its_words_and_has_no_date(said: str, note: str) -> None:
    (draft,) = observed(said)
    assert (draft.text, draft.refers_to) == (f"User: {note}", None)


def test_a_planned_day_without_a_year_lies_ahead() -> None:
    (draft,) = observed("The chairs will be shipped on October 20.")
    assert (draft.text, draft.kind) == ("User: chairs will be shipped 20 October 2026", Kind.PLAN)
    assert draft.refers_to == Interval(date(2026, 10, 20), date(2026, 10, 20))


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("Please don't ring me after nine.", "asks not to be rung after nine"),
        ("Please do not text me on Sundays.", "asks not to be texted on Sundays"),
        ("Could you please not send me newsletters?", "asks not to be sent newsletters"),
        ("Don't wake me before noon.", "asks not to be woken before noon"),
        ("Please never share my address.", "asks never to share address"),
        ("Please, no surprise visits.", "asks for no surprise visits"),
        ("Please don't call me.", "asks not to be called"),
    ],
)
def test_a_refusal_reads_as_one(said: str, note: str) -> None:
    assert [(draft.text, draft.kind) for draft in observed(said)] == [(f"User: {note}", Kind.PREFERENCE)]


@pytest.mark.parametrize(
    "said", ["Don't worry about me.", "No problem with that!", "Please don't worry.", "Never mind me."]
)
def test_what_refuses_nothing_is_not_noted(said: str) -> None:
    assert texts(said) == []


def test_a_request_to_be_called_says_who_is_called() -> None:
    assert texts("Please call me after six in the evening.") == ["User: asks to be called after six in evening"]


def test_where_a_person_is_reached_stays_whole() -> None:
    assert texts("You can reach me at <EMAIL_ADDRESS> or on <PHONE_NUMBER>.") == [
        "User: can be reached at <EMAIL_ADDRESS> or on <PHONE_NUMBER>"
    ]


def test_an_offer_accepted_is_a_request_and_declined_a_refusal() -> None:
    offer = "Shall I send you the price list?"
    assert [(draft.text, draft.kind) for draft in observed("Yes, please.", asked=offer)] == [
        ("User: asks to send price list", Kind.TASK)
    ]
    assert texts("Please.", asked=offer) == ["User: asks to send price list"]
    assert texts("No, thanks.", asked=offer) == ["User: asks not to send price list"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("How is the weather for the weekend?", "We can talk next week."),
        (None, "What is the weather like this weekend? Let us talk next week."),
        (None, "how is the weather this weekend"),
        (None, "do you know a bakery near Rua Nova"),
        ("Are you still there?", "back"),
        ("Are you still there, Iris?", "I'm back!"),
        (None, "Hi, I'm back"),
    ],
)
def test_questions_and_small_talk_leave_no_debris(asked: str | None, said: str) -> None:
    assert texts(said, asked=asked) == []


def test_a_bare_date_keeps_what_it_answers() -> None:
    assert texts("Next Friday", asked="When do you leave?") == ["User: leave? 13 March 2026"]


def test_what_a_stranger_needs_to_read_stays() -> None:
    assert texts("My favourite mug is the blue one from Delft. My cousin Leo will help me paint the fence.") == [
        "User: favourite mug is blue one from Delft",
        "User: cousin Leo will help paint fence",
    ]


def test_ranges_of_hours_and_numbers_stay_whole() -> None:
    assert texts("The shop is open 10:00–12:30 and seats 9–12 people on the Porto–Vigo line.") == [
        "User: shop is open 10:00–12:30 and seats 9–12 people on Porto–Vigo line"
    ]


@pytest.mark.parametrize("said", ["The rent is 750 euros a month.", "You can reach me at <EMAIL_ADDRESS>."])
def test_what_a_home_costs_and_where_one_is_reached_outlives_lesser_lines(said: str) -> None:
    assert [draft.priority for draft in observed(said)] == [Priority.HIGH]
