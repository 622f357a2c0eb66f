"""Absolute and relative dates, seen from Wednesday 24 May 2023."""

import itertools
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from memory import dates

WEDNESDAY = datetime(2023, 5, 24, 10, tzinfo=UTC)


def spoken_of(text: str, said_at: datetime = WEDNESDAY) -> list[tuple[str, str]]:
    """Each mention as its words and its days: one day, or "first..last"."""
    return [
        (text[one.start : one.end], _days(one.interval.start, one.interval.end)) for one in dates.resolve(text, said_at)
    ]


def _days(start: date, end: date) -> str:
    return str(start) if start == end else f"{start}..{end}"


def the_days(text: str, said_at: datetime = WEDNESDAY) -> list[str]:
    return [days for _, days in spoken_of(text, said_at)]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The form is from 2023-05-08, filed late.", "2023-05-08"),
        ("logged 2023-05-08T10:00:00Z by the tool", "2023-05-08"),
        ("signed on 8 May 2023", "2023-05-08"),
        ("signed on the 8th of May, 2021", "2021-05-08"),
        ("It was May 8th, 2023.", "2023-05-08"),
        ("due 25/12/2022", "2022-12-25"),
        ("due 12/25/2022", "2022-12-25"),
        ("seen 8.5.2023 there", "2023-05-08"),
        ("we met in May 2021", "2021-05-01..2021-05-31"),
        ("the summer of 2021", "2021-06-01..2021-08-31"),
        ("since 2016 she has lived there", "2016-01-01..2016-12-31"),
        ("early March 2022 was cold", "2022-03-01..2022-03-10"),
        ("in late October we flew home", "2022-10-22..2022-10-31"),
        ("the last week of May", "2023-05-25..2023-05-31"),
        ("first weekend of August 2023", "2023-08-05..2023-08-06"),
        ("the second Friday in June 2023", "2023-06-09"),
        ("the week of May 8, 2023", "2023-05-08..2023-05-14"),
        ("from 3 to 7 June 2023", "2023-06-03..2023-06-07"),
        ("Q3 2024 at the latest", "2024-07-01..2024-09-30"),
        ("we were in Rome for Christmas", "2022-12-25"),
        ("on New Year's Eve we will dance", "2023-12-31"),
        ("29 February 2024", "2024-02-29"),
    ],
)
def test_a_date_that_stands_in_the_calendar_is_read(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("I went yesterday", "2023-05-23"),
        ("the day before yesterday we met", "2023-05-22"),
        ("Last night was long", "2023-05-23"),
        ("tomorrow then", "2023-05-25"),
        ("the day after tomorrow", "2023-05-26"),
        ("I moved last week.", "2023-05-15..2023-05-21"),
        ("last weekend we sailed", "2023-05-20..2023-05-21"),
        ("the weekend before last", "2023-05-13..2023-05-14"),
        ("this weekend we will rest", "2023-05-27..2023-05-28"),
        ("next month", "2023-06-01..2023-06-30"),
        ("at the end of next month", "2023-06-21..2023-06-30"),
        ("last year", "2022-01-01..2022-12-31"),
        ("last summer", "2022-06-01..2022-08-31"),
        ("next summer", "2023-06-01..2023-08-31"),
        ("last December", "2022-12-01..2022-12-31"),
        ("next May", "2024-05-01..2024-05-31"),
        ("3 days ago", "2023-05-21"),
        ("a couple of months ago", "2023-03-01..2023-03-31"),
        ("about five years ago", "2018-01-01..2018-12-31"),
        ("half a year ago", "2022-11-01..2022-11-30"),
        ("two weekends ago", "2023-05-13..2023-05-14"),
        ("in three weeks I'll go", "2023-06-12..2023-06-18"),
        ("ten days from now", "2023-06-03"),
        ("last Friday", "2023-05-19"),
        ("next Tuesday", "2023-05-30"),
        ("We met on Friday", "2023-05-19"),
        ("See you on Friday", "2023-05-26"),
        ("We ate there last Tues.", "2023-05-23"),
        ("on the 15th I have an appointment", "2023-06-15"),
        ("on the 15th we signed", "2023-05-15"),
        ("I've had them for three years now", "2020-01-01..2020-12-31"),
        ("Over the weekend we painted the fence", "2023-05-20..2023-05-21"),
    ],
)
def test_a_relative_date_counts_from_the_day_on_which_it_was_said(text: str, days: str) -> None:
    assert the_days(text) == [days]


def test_a_wednesday_said_on_a_wednesday_is_a_week_away() -> None:
    assert the_days("last Wednesday") == ["2023-05-17"]
    assert the_days("next Wednesday") == ["2023-05-31"]


def test_the_weekend_just_over_is_meant_by_who_speaks_of_it_early_in_the_week() -> None:
    monday = WEDNESDAY - timedelta(days=2)
    assert the_days("this weekend was wild", monday) == ["2023-05-20..2023-05-21"]
    assert the_days("this weekend I will rest", monday) == ["2023-05-27..2023-05-28"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("May 8th was warm", "2023-05-08"),
        ("we met on 3 November", "2022-11-03"),
        ("the party will be on 3 November", "2023-11-03"),
        ("in June we went to Oslo", "2022-06-01..2022-06-30"),
        ("in June we will go to Oslo", "2023-06-01..2023-06-30"),
    ],
)
def test_a_date_without_its_year_is_on_the_side_to_which_the_verb_looks(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    "text",
    [
        "recently, soon, a while ago, the other day, one day, someday, these days, in the past, a few weeks ago",
        "every Friday and on weekends, most Sundays too",
        "it may be in march time, the sun sat low",
        "I finished the book in two weeks",
        "it feels like yesterday",
        "at 10:30, room 2023b, version 1.2.3, 2000 pieces, 555-12-34",
        "03/04/2023",
        "31 February 2023, 2023-13-45 and 99.99.2023",
        "last but not least, next to the house, this one",
        "",
        "😀 \u202e\u200b\x00",
    ],
)
def test_what_is_vague_habitual_or_ambiguous_has_no_date(text: str) -> None:
    assert spoken_of(text) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Ontem fui ao médico", "2023-05-23"),
        ("anteontem choveu", "2023-05-22"),
        ("Depois de amanhã viajo", "2023-05-26"),
        ("mudei para o Porto na semana passada", "2023-05-15..2023-05-21"),
        ("no mês que vem começo", "2023-06-01..2023-06-30"),
        ("há três dias", "2023-05-21"),
        ("duas semanas atrás", "2023-05-08..2023-05-14"),
        ("daqui a dois meses", "2023-07-01..2023-07-31"),
        ("nasceu em 8 de maio de 2021", "2021-05-08"),
        ("em março de 2022", "2022-03-01..2022-03-31"),
        ("na sexta-feira passada", "2023-05-19"),
        ("na próxima segunda-feira", "2023-05-29"),
        ("nasci em 03/04/1990", "1990-04-03"),
        ("no fim de semana passado", "2023-05-20..2023-05-21"),
    ],
)
def test_portuguese_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Ayer compré pan", "2023-05-23"),
        ("anoche no dormí", "2023-05-23"),
        ("pasado mañana viajo", "2023-05-26"),
        ("nos mudamos la semana pasada", "2023-05-15..2023-05-21"),
        ("el próximo mes", "2023-06-01..2023-06-30"),
        ("hace dos semanas", "2023-05-08..2023-05-14"),
        ("dentro de tres días", "2023-05-27"),
        ("el 8 de mayo de 2021", "2021-05-08"),
        ("el lunes que viene", "2023-05-29"),
        ("el viernes pasado", "2023-05-19"),
        ("desde 2019", "2019-01-01..2019-12-31"),
        ("el año pasado", "2022-01-01..2022-12-31"),
    ],
)
def test_spanish_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("昨天我去了医院", "2023-05-23"),
        ("我上周搬到上海", "2023-05-15..2023-05-21"),
        ("上个月", "2023-04-01..2023-04-30"),
        ("下周三开会", "2023-05-31"),
        ("三天前", "2023-05-21"),
        ("两个星期前", "2023-05-08..2023-05-14"),
        ("2023年5月8日出生", "2023-05-08"),
        ("二〇二一年十月", "2021-10-01..2021-10-31"),
        ("去年夏天", "2022-06-01..2022-08-31"),
        ("他5月8号到了", "2023-05-08"),
        ("後天見", "2023-05-26"),
        ("上週末", "2023-05-20..2023-05-21"),
    ],
)
def test_chinese_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    "text", ["每周五我都去", "等了三个月", "我住在三号楼", "¿por la mañana o por la tarde?", "de manhã cedo"]
)
def test_other_languages_have_vague_and_habitual_words_too(text: str) -> None:
    assert spoken_of(text) == []


def test_several_dates_come_in_order_and_never_overlap() -> None:
    found = dates.resolve("From May 3, 2023 to 8 May 2023, and again yesterday and in June 2024.", WEDNESDAY)
    assert [one.interval.start for one in found] == [
        date(2023, 5, 3),
        date(2023, 5, 8),
        date(2023, 5, 23),
        date(2024, 6, 1),
    ]
    assert all(before.end <= after.start for before, after in itertools.pairwise(found))


def test_the_day_is_that_of_the_speakers_own_offset() -> None:
    late_in_lisbon = datetime(2023, 5, 24, 23, 30, tzinfo=timezone(timedelta(hours=-3)))
    assert the_days("yesterday", late_in_lisbon) == ["2023-05-23"]
    assert the_days("yesterday", late_in_lisbon.astimezone(UTC)) == ["2023-05-24"]


def test_a_year_at_the_edge_of_the_calendar_breaks_nothing() -> None:
    assert the_days("999 years ago", datetime(500, 1, 1, tzinfo=UTC)) == []
    assert the_days("next year", datetime(9999, 12, 31, tzinfo=UTC)) == []
    assert the_days("tomorrow", datetime(9999, 12, 31, tzinfo=UTC)) == []
