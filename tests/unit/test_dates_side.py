"""On which side of the day a date without a year lies, and which days are a habit: seen from Saturday 7 March 2026."""

from datetime import UTC, datetime

import pytest

from memory import dates

SATURDAY = datetime(2026, 3, 7, 10, tzinfo=UTC)


def the_days(text: str) -> list[str]:
    found = [one.interval for one in dates.resolve(text, SATURDAY)]
    return [str(one.start) if one.start == one.end else f"{one.start}..{one.end}" for one in found]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The chairs will be shipped on October 20.", "2026-10-20"),
        ("We decided to paint on October 20", "2026-10-20"),
        ("They agreed to pay on 20 October", "2026-10-20"),
        ("We are leaving on 20 October", "2026-10-20"),
        ("The fair opens on 20 October", "2026-10-20"),
        ("The exam is on 20 October", "2026-10-20"),
        ("I pushed the visit to 20 October", "2026-10-20"),
        ("My deadline, October 20, is fixed", "2026-10-20"),
        ("We plan a voyage in October", "2026-10-01..2026-10-31"),
        ("Vai ser pintado em 20 de outubro", "2026-10-20"),
        ("Será pintado em 20 de outubro", "2026-10-20"),
        ("Decidimos pintar em outubro", "2026-10-01..2026-10-31"),
        ("O prazo é 20 de outubro", "2026-10-20"),
        ("Van a pintar el 20 de octubre", "2026-10-20"),
        ("Saldrán el 20 de octubre", "2026-10-20"),
        ("La cita es el 20 de octubre", "2026-10-20"),
        ("商店将于10月20日开张", "2026-10-20"),
        ("我们决定10月20日搬家", "2026-10-20"),
        ("截止日期是10月20日", "2026-10-20"),
    ],
)
def test_what_is_planned_decided_or_due_lies_ahead(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The chairs were shipped on April 20.", "2025-04-20"),
        ("I missed the exam on 20 April", "2025-04-20"),
        ("The fair opened in April", "2025-04-01..2025-04-30"),
        ("Pintaram a casa em 20 de abril", "2025-04-20"),
        ("Pintaron la casa el 20 de abril", "2025-04-20"),
        ("我们4月20日去了海边", "2025-04-20"),
    ],
)
def test_what_is_told_lies_behind(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(("text", "days"), [("20 April, rain", "2026-04-20"), ("20 November, rain", "2025-11-20")])
def test_without_a_verb_the_nearest_is_meant(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    "text",
    [
        "I bake on Sunday mornings",
        "choir on Tuesday and Thursday evenings",
        "every Monday and Friday I row",
        "each Wednesday, most Sundays, weekday evenings",
        "every other Tuesday",
        "the first Monday of the month",
        "every year in August",
        "every August we sail",
        "Remo aos sábados e toda quarta-feira",
        "todo ano em agosto",
        "los lunes y cada viernes",
        "我每周一和周三游泳",
        "每年8月都去",
        "每月8号交房租",
    ],
)
def test_a_habit_has_no_date(text: str) -> None:
    assert the_days(text) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("open 1 March–31 May 2026", "2026-03-01..2026-05-31"),
        ("open 1 December 2025 – 31 January 2026", "2025-12-01..2026-01-31"),
        ("open 29 December-2 January 2027", "2026-12-29..2027-01-02"),
        ("open March 3 - April 5, 2026", "2026-03-03..2026-04-05"),
        ("open May–July 2026", "2026-05-01..2026-07-31"),
        ("aberto 29 de maio–4 de junho de 2026", "2026-05-29..2026-06-04"),
        ("2026年5月29日至2026年6月4日", "2026-05-29..2026-06-04"),
    ],
)
def test_a_span_with_a_dash_is_one_mention(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["monday ", "every ", "may–", "1 may–", "moved to ", "每", "is due "])
def test_a_page_made_to_cost_is_read_in_time(text: str) -> None:
    assert isinstance(dates.resolve(text * (200_000 // len(text)), SATURDAY), list)
