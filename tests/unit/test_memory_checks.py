"""What of a well-formed answer may become memory."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from memory import dates, tokens
from memory.checks import Claim, Record, normalise, sift
from memory.dating import Evidence, carries, interval
from memory.observation import Interval, Kind, Line, Priority
from memory.turn import Role, ToolCall, Turn

MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)
LAST_WEEK = Interval(date(2026, 2, 23), date(2026, 3, 1))


def said(number: int, text: str, role: Role = Role.USER, name: str | None = None, conversation: int = 1) -> Turn:
    return Turn(number, conversation, role, text, MONDAY + timedelta(minutes=number), tokens.count(text), name)


def claim(
    text: str,
    *turns: Turn,
    kind: Kind = Kind.EVENT,
    refers_to: Interval | None = None,
    supersedes: int | None = None,
) -> Claim:
    return Claim(text, kind, Priority.MEDIUM, turns, refers_to, supersedes)


def line(number: int, text: str, refers_to: Interval | None = None) -> Line:
    return Line(number, text, Kind.EVENT, Priority.LOW, MONDAY - timedelta(days=90), 9, refers_to=refers_to)


def sifted(
    claims: Sequence[Claim], turns: Sequence[Turn], log: Sequence[Line] = ()
) -> tuple[list[str], dict[str, int]]:
    drafts, dropped = sift(
        claims, Record(turns, log, "Note each fact once, and nothing that the log says.", dates.resolve)
    )
    return [draft.text for draft in drafts], dict(dropped)


def day(text: str) -> Interval:
    return Interval(date.fromisoformat(text), date.fromisoformat(text))


MOVED = said(1, "I moved to Porto last week and I start at the museum on 5 May.")


@pytest.mark.parametrize("kind", [Kind.ATTRIBUTE, Kind.PREFERENCE, Kind.PLAN, Kind.CORRECTION])
@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL])
def test_a_fact_about_the_person_needs_the_persons_own_word(kind: Kind, role: Role) -> None:
    other = said(2, "You surely like fish.", role)
    assert sifted([claim("The user likes fish", other, kind=kind)], [MOVED, other]) == ([], {"not_the_persons_word": 1})
    beside = claim("The user likes fish", other, MOVED, kind=kind)
    assert sifted([beside], [MOVED, other]) == (["The user likes fish"], {})


@pytest.mark.parametrize("kind", [Kind.EVENT, Kind.DECISION, Kind.TASK])
def test_what_an_assistant_or_a_tool_did_is_a_fact(kind: Kind) -> None:
    done = said(2, "I have sent the parcel.", Role.ASSISTANT)
    assert sifted([claim("The assistant sent the parcel", done, kind=kind)], [MOVED, done])[0]


def test_among_named_speakers_each_speaks_for_themself() -> None:
    ana = said(1, "I live in Porto.", name="Ana")
    rui = said(2, "I live in Faro. You must love fish!", Role.ASSISTANT, name="Rui Silva")
    told = [
        claim("Rui lives in Faro", rui, kind=Kind.ATTRIBUTE),
        claim("Ana loves fish", rui, kind=Kind.PREFERENCE),
        claim("Ana lives in Porto", ana, kind=Kind.ATTRIBUTE),
    ]
    assert sifted(told, [ana, rui]) == (["Rui lives in Faro", "Ana lives in Porto"], {"not_the_persons_word": 1})


def test_a_lone_name_makes_no_second_person() -> None:
    assistant = said(2, "You must love fish!", Role.ASSISTANT, name="Helper")
    loves = claim("Helper says that the user loves fish", assistant, kind=Kind.PREFERENCE)
    assert sifted([loves], [MOVED, assistant]) == ([], {"not_the_persons_word": 1})


@pytest.mark.parametrize("text", ["Does the user live in Porto?", "用户住在波尔图吗？", "هل يعيش في بورتو؟"])
def test_a_question_is_no_fact(text: str) -> None:
    assert sifted([claim(text, MOVED)], [MOVED]) == ([], {"question": 1})


def test_a_quoted_question_is_an_event() -> None:
    text = 'The user asked "is Porto far?"'
    assert sifted([claim(text, MOVED)], [MOVED]) == ([text], {})


def test_a_copy_of_the_instructions_is_dropped() -> None:
    copied = "The user: note each fact once and nothing that the log says"
    assert sifted([claim(copied, MOVED)], [MOVED]) == ([], {"instruction_copy": 1})


def test_a_text_that_loops_is_dropped() -> None:
    assert sifted([claim("tea " * 200, MOVED)], [MOVED]) == ([], {"looping": 1})


def test_the_same_said_twice_is_kept_once() -> None:
    twice = [claim("The user moved to Porto", MOVED), claim("  the USER moved, to Porto!", MOVED)]
    assert sifted(twice, [MOVED]) == (["The user moved to Porto"], {"duplicate": 1})


def test_the_same_of_another_day_is_another_fact() -> None:
    turns = [said(1, "I swam on 3 March 2025."), said(2, "I swam on 4 March 2025.")]
    swam = [
        claim("The user swam", turns[0], refers_to=day("2025-03-03")),
        claim("The user swam", turns[1], refers_to=day("2025-03-04")),
        claim("The user swam", turns[1], refers_to=day("2025-03-04")),
    ]
    assert sifted(swam, turns, [line(1, "The user swam", day("2025-03-01"))]) == (
        ["The user swam", "The user swam"],
        {"duplicate": 1},
    )


def test_what_the_log_says_already_is_dropped() -> None:
    log = [line(1, "The user moved to Pôrto.")]
    again = [claim("The user moved to Pôrto", MOVED), claim("The user moved to Po\u0302rto", MOVED)]
    assert sifted(again, [MOVED], log) == ([], {"duplicate_of_log": 2})


@pytest.mark.parametrize(
    ("claimed", "settled"),
    [
        (LAST_WEEK, LAST_WEEK),
        (day("2026-02-25"), LAST_WEEK),
        (Interval(date(2026, 2, 20), date(2026, 3, 2)), LAST_WEEK),
        (day("2026-05-05"), day("2026-05-05")),
        (Interval(date(2026, 5, 1), date(2026, 5, 31)), day("2026-05-05")),
        (day("2026-07-09"), None),
        (day("2025-05-05"), day("2025-05-05")),
        (day("2024-05-05"), None),
        (day("2025-02-25"), None),
        (day("2026-05-06"), None),
        (day("2031-01-01"), None),
    ],
)
def test_a_date_is_as_precise_as_it_was_said_or_left_out(claimed: Interval, settled: Interval | None) -> None:
    turns = [MOVED]
    drafts, dropped = sift(
        [claim("The user moved to Porto", MOVED, refers_to=claimed)], Record(turns, [], "", dates.resolve)
    )
    assert [draft.refers_to for draft in drafts] == [settled]
    assert dropped["date_left_out"] == (settled is None)


@pytest.mark.parametrize(
    "text",
    [
        "The user moved to Porto on 9 July 2026",
        "The user moved to Porto in 2019",
        "The user moved to Porto on 2031-01-01",
        "Since 5 May 2024 the user works at the museum",
    ],
)
def test_a_text_with_a_date_that_nobody_said_is_dropped(text: str) -> None:
    assert sifted([claim(text, MOVED)], [MOVED]) == ([], {"unsupported_date": 1})


@pytest.mark.parametrize(
    "text",
    [
        "The user starts at the museum on 5 May 2026",
        "The user starts at the museum on 2026-05-05",
        "The user starts at the museum in May 2026",
        "The user starts at the museum in 2026",
        "The user moved to Porto in the week of 23 February 2026",
        "The user moved to Porto between 2026-02-23 and 2026-03-01",
        "On 2 March 2026 the user said that they had moved",
        "The user moved to Porto last week",
        "The user moved to Porto",
    ],
)
def test_a_text_with_a_date_that_was_said_is_kept(text: str) -> None:
    assert sifted([claim(text, MOVED)], [MOVED]) == ([text], {})


def test_a_date_may_stand_in_the_question_that_a_turn_answers() -> None:
    turns = [said(1, "Shall I book 9 July 2026?", Role.ASSISTANT), said(2, "Yes, please.")]
    booked = claim("The user wants 9 July 2026 booked", turns[1], refers_to=day("2026-07-09"))
    drafts, dropped = sift([booked], Record(turns, [], "", dates.resolve))
    assert [draft.refers_to for draft in drafts] == [day("2026-07-09")]
    assert not dropped


def test_a_date_of_another_conversation_is_no_evidence() -> None:
    turns = [said(1, "We met on 9 July 2026.", conversation=2), said(2, "Yes, please.")]
    assert sifted([claim("The user wants 9 July 2026 booked", turns[1])], turns) == ([], {"unsupported_date": 1})


def test_a_correction_may_name_the_date_that_it_corrects() -> None:
    log = [line(7, "The concert is on 9 July 2026")]
    turns = [said(1, "No, the concert is on 10 July 2026.")]
    text = "The concert is on 10 July 2026, not 9 July 2026"
    assert sifted([claim(text, *turns, supersedes=7)], turns, log) == ([text], {})
    assert sifted([claim(text, *turns)], turns, log)[0] == []


def test_a_tools_arguments_are_evidence() -> None:
    call = ToolCall("a", "book", '{"day": "2026-07-09"}')
    booked = Turn(1, 1, Role.ASSISTANT, "", MONDAY, 9, tool_calls=(call,))
    assert sifted([claim("The assistant booked 9 July 2026", booked)], [booked])[0]


def test_a_date_of_a_language_that_is_not_resolved_holds_near_the_turn() -> None:
    turns = [said(1, "Вчера я переехал в Порту.")]
    moved = [claim("Пользователь переехал в Порту 2026-03-01", *turns, refers_to=day("2026-03-01"))]
    drafts, _ = sift(moved, Record(turns, [], "", dates.resolve))
    assert [draft.refers_to for draft in drafts] == [day("2026-03-01")]
    invented = [claim("Пользователь переехал в Порту 2031-03-01", *turns)]
    assert sifted(invented, turns) == ([], {"unsupported_date": 1})


def test_the_numbers_of_an_ambiguous_date_hold_in_either_reading() -> None:
    turns = [said(1, "It was on 03/04/2023.")]
    read = [claim("It was on 2023-04-03", *turns), claim("It was on 2023-03-04", *turns)]
    assert len(sifted(read, turns)[0]) == 2
    assert sifted([claim("It was on 2023-04-05", *turns)], turns)[0] == []


def test_two_mentions_make_one_stretch() -> None:
    turns = [said(1, "I was away from 3 March 2025 until 9 March 2025.")]
    stretch = Interval(date(2025, 3, 3), date(2025, 3, 9))
    assert Evidence(turns, dates.resolve).settle(stretch) == stretch


def test_many_claims_about_one_huge_turn_resolve_it_once() -> None:
    calls: list[str] = []

    def resolve(text: str, at: datetime) -> list[dates.Mention]:
        calls.append(text)
        return dates.resolve(text, at)

    huge = said(1, "I moved to Porto on 9 July 2025. " * 500)
    moved = [claim(f"The user moved to house {at}", huge) for at in range(100)]
    drafts, _ = sift(moved, Record([huge], [], "", resolve))
    assert len(drafts) == 100
    assert sum(len(text) > 1_000 for text in calls) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes tea.", "the USER likes  tea"),
        ("Ana — likes tea!", "ana likes tea"),
        ("Straße", "STRASSE"),
        ("ﬁne", "fine"),
        ("Ｐｏｒｔｏ", "porto"),
        ("cafe\u0301", "café"),
        ("zero\u200bwidth", "zerowidth"),
        ("用户喜欢茶。", "用户喜欢茶"),
        ("don't", "don’t"),
    ],
)
def test_texts_that_differ_in_form_alone_are_the_same(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.5 kg", "35 kg"),
        ("5 %", "5"),
        ("C#", "C"),
        ("C++", "C"),
        ("it is -5 degrees", "it is 5 degrees"),
        ("5 €", "5 $"),
        ("el gato", "él gato"),
        ("likes 🍵", "likes 🍺"),
        ("???", "!!!"),
        ("a@b", "a b"),
    ],
)
def test_texts_that_say_something_else_are_not_the_same(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@pytest.mark.parametrize(
    ("value", "days"),
    [
        ("2026-03-02", day("2026-03-02")),
        ("2026-02-23/2026-03-01", LAST_WEEK),
        ("2026-02-23 to 2026-03-01", LAST_WEEK),
        ("2026-03-01..2026-02-23", LAST_WEEK),
        (["2026-02-23", "2026-03-01"], LAST_WEEK),
        ({"start": "2026-02-23", "end": "2026-03-01"}, LAST_WEEK),
        ({"start": "2026-03-02", "end": None}, day("2026-03-02")),
        ("2026-03-02T10:15:00+01:00", day("2026-03-02")),
        ("2026-02", Interval(date(2026, 2, 1), date(2026, 2, 28))),
        ("2026-12", Interval(date(2026, 12, 1), date(2026, 12, 31))),
        ("2026", Interval(date(2026, 1, 1), date(2026, 12, 31))),
        (2026, Interval(date(2026, 1, 1), date(2026, 12, 31))),
        (None, None),
        ("", None),
        ("last week", None),
        ("2026-02-30", None),
        ("2026-13-01", None),
        ("0000-01-01", None),
        ("9999-12", None),
        ([], None),
        ({}, None),
        (True, None),
        ("20260302", None),
    ],
)
def test_a_models_date_is_read_or_none(value: object, days: Interval | None) -> None:
    assert interval(value) == days


@pytest.mark.parametrize(
    ("text", "days", "carried"),
    [
        ("Swam on 3 May 2025", day("2025-05-03"), True),
        ("Swam on 2025-05-03", day("2025-05-03"), True),
        ("Swam on 3 June 2025", day("2025-05-03"), False),
        ("Swam in May 2025", day("2025-05-03"), False),
        ("Swam", day("2025-05-03"), False),
        ("Swam from 3 May 2025 to 5 May 2025", Interval(date(2025, 5, 3), date(2025, 5, 5)), True),
        ("плавал 3 мая 2025", day("2025-05-03"), True),
    ],
)
def test_a_text_carries_the_days_that_it_names(text: str, days: Interval, carried: bool) -> None:  # noqa: FBT001 - a row of the table
    assert carries(text, days, MONDAY, dates.resolve) is carried
