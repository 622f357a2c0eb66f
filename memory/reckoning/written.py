"""Days of the calendar as a note writes them."""

import re
from datetime import date, timedelta

from memory.observation import Interval
from memory.wordlist import listed

_MONTHS = {
    "en": listed(
        """
        January February March April May June July August September October November December
        """
    ),
    "pt": listed(
        """
        janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
        """
    ),
    "es": listed(
        """
        enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
        """
    ),
    "de": listed(
        """
        Januar Februar März April Mai Juni Juli August September Oktober November Dezember
        """
    ),
    "fr": listed(
        """
        janvier février mars avril mai juin juillet août septembre octobre novembre décembre
        """
    ),
    "it": listed(
        """
        gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
        """
    ),
}
_EAST = frozenset({"zh", "ja"})
_WITH_OF = frozenset({"pt", "es"})
_BEFORE = re.compile(
    r"(?:since|until|till|by|from|during|desde|até|hasta|seit|bis|ab|depuis|jusqu'en|entro|dal)\b", re.IGNORECASE
)
_BEFORE_OR_IN = re.compile(rf"{_BEFORE.pattern}|(?:em|en|im|in)\b(?!\s\d+\s[^\W\d])", re.IGNORECASE)
_LASTING = re.compile(r"(?:for\s)?(.*\s(?:month|year)s)(?:\snow)?", re.IGNORECASE)
_YEARS_AWAY = re.compile(
    r".*(?:\byears?\s(?:ago|back)|\ban(?:os|os\satrás)|\baños|\bjahren?|\bans|\banni\sfa|年[以之]?前)", re.IGNORECASE
)


def in_place_of(said: str, days: Interval, language: str = "en") -> str:
    """The days as they stand instead of the words for them; how long something lasted, or lies back, stays beside them."""
    if language == "en" and (lasting := _LASTING.fullmatch(said)):
        return f"{lasting[1]} (since {written(days)})"
    if _YEARS_AWAY.fullmatch(said):
        return f"{said} ({written(days, language)})"
    before = (_BEFORE if language == "en" else _BEFORE_OR_IN).match(said)
    return f"{before[0].lower()} {written(days, language)}" if before else written(days, language)


def written(days: Interval, language: str = "en") -> str:
    """7 May 2023, 5-11 June 2023 (with a dash), June 2023, 2022; pt, es, de, fr, it and zh in their own way, others as English."""
    if days.start == days.end:
        return _day(days.start, language)
    if _is_whole_year(days):
        return f"{days.start.year}年" if language in _EAST else str(days.start.year)
    if _is_whole_month(days):
        return _month(days.start, language)
    return _stretch(days.start, days.end, language)


def _stretch(start: date, end: date, language: str) -> str:
    if language in _EAST:
        return f"{_day(start, language)}至{_day(end, language)}"
    if _same_month(start, end):
        dot = "." if language == "de" else ""
        return f"{start.day}{dot}–{_day(end, language)}"
    first = _day(start, language)
    return f"{first.removesuffix(_year(start, language)) if start.year == end.year else first}–{_day(end, language)}"


def _is_whole_year(days: Interval) -> bool:
    first, last = days.start, days.end
    return first.year == last.year and (first.month, first.day, last.month, last.day) == (1, 1, 12, 31)


def _is_whole_month(days: Interval) -> bool:
    return days.start.day == 1 and _same_month(days.start, days.end) and _is_last(days.end)


def _is_last(on: date) -> bool:
    return on == date.max or (on + timedelta(days=1)).day == 1


def _same_month(start: date, end: date) -> bool:
    return (start.year, start.month) == (end.year, end.month)


def _day(on: date, language: str) -> str:
    if language in _EAST:
        return f"{on.year}年{on.month}月{on.day}日"
    of = " de" if language in _WITH_OF else ""
    dot = "." if language == "de" else ""
    return f"{on.day}{dot}{of} {_name(on, language)}{_year(on, language)}"


def _month(on: date, language: str) -> str:
    return f"{on.year}年{on.month}月" if language in _EAST else f"{_name(on, language)}{_year(on, language)}"


def _name(on: date, language: str) -> str:
    return _MONTHS.get(language, _MONTHS["en"])[on.month - 1]


def _year(on: date, language: str) -> str:
    return f" de {on.year}" if language in _WITH_OF else f" {on.year}"
