"""Dates as notes write them."""

from datetime import date

import pytest

from memory.observation import Interval
from memory.reckoning.written import in_place_of, written


def days(start: tuple[int, int, int], end: tuple[int, int, int] | None = None) -> Interval:
    return Interval(date(*start), date(*(end or start)))


@pytest.mark.parametrize(
    ("interval", "english", "portuguese", "chinese"),
    [
        (days((2023, 5, 7)), "7 May 2023", "7 de maio de 2023", "2023年5月7日"),
        (days((2023, 5, 1), (2023, 5, 31)), "May 2023", "maio de 2023", "2023年5月"),
        (days((2022, 1, 1), (2022, 12, 31)), "2022", "2022", "2022年"),
        (days((2023, 6, 5), (2023, 6, 11)), "5–11 June 2023", "5–11 de junho de 2023", "2023年6月5日至2023年6月11日"),
        (days((2023, 5, 29), (2023, 6, 4)), "29 May–4 June 2023", "29 de maio–4 de junho de 2023", "2023年5月29日至2023年6月4日"),
        (days((2022, 12, 1), (2023, 2, 28)), "1 December 2022–28 February 2023", "1 de dezembro de 2022–28 de fevereiro de 2023", "2022年12月1日至2023年2月28日"),
        (days((9999, 12, 1), (9999, 12, 31)), "December 9999", "dezembro de 9999", "9999年12月"),
    ],
)  # fmt: skip
def test_days_are_written_in_the_language_of_the_turn(
    interval: Interval, english: str, portuguese: str, chinese: str
) -> None:
    assert (written(interval), written(interval, "pt"), written(interval, "zh")) == (english, portuguese, chinese)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("last week", "2020"),
        ("since 2020", "since 2020"),
        ("by 2020", "by 2020"),
        ("for three years now", "three years (since 2020)"),
        ("six years ago", "six years ago (2020)"),
    ],
)
def test_how_long_and_since_when_are_not_lost(said: str, instead: str) -> None:
    assert in_place_of(said, days((2020, 1, 1), (2020, 12, 31))) == instead
