"""English dates that name a month, a year or a feast."""

import re
from datetime import date, timedelta

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import FUTURE, PAST, Spoken
from memory.reckoning.english import MONTH, MONTHS, PART, WEEKDAYS, any_of, is_habit, lean, named, part_of, rule

_HOLIDAYS = {
    "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "new year's eve": (12, 31),
    "new year's day": (1, 1), "halloween": (10, 31), "valentine's day": (2, 14), "boxing day": (12, 26),
}  # fmt: skip
_NTH = {"first": 0, "second": 1, "third": 2, "fourth": 3}
_ORDINAL = r"(?:st|nd|rd|th)?\b"
_DAY = rf"(?P<day>\d{{1,2}}){_ORDINAL}(?:\s?(?:-|–|to|and|until|through)\s?(?P<last>\d{{1,2}}){_ORDINAL})?"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_WEEK_OF = r"(?:\b(?P<week>week(?:end)?)\sof\s)?"
_BEFORE_MONTH = r"\b(?:in|since|until|till|by|during|from|around|through)"


def _month_day(match: re.Match[str], spoken: Spoken) -> Interval | None:
    if is_habit(match, spoken):
        return None
    number, first, last = MONTHS[match["month"].lower()], int(match["day"]), int(match["last"] or match["day"])
    start = _dated(match, number, first, spoken)
    if match["week"]:
        return calendar.week(start) if match["week"].lower() == "week" else calendar.weekend(start)
    return calendar.days(start, start.replace(day=last))


def _dated(match: re.Match[str], number: int, monthday: int, spoken: Spoken) -> date:
    if match["year"]:
        return date(int(match["year"]), number, monthday)
    return calendar.yearless(spoken.on, number, monthday, lean(match, spoken)).start


def _span(match: re.Match[str], _: Spoken) -> Interval | None:
    """29 May–4 June 2023, May–July 2023: the year stands at the end, or at both."""
    ends = MONTHS[match["month"].lower()], MONTHS[match["until"].lower()]
    last = int(match["year"])
    first = int(match["from"]) if match["from"] else last - (ends[0] > ends[1])
    start, end = calendar.month(first, ends[0]), calendar.month(last, ends[1])
    if match["day"] is None:
        return calendar.days(start.start, end.end)
    return calendar.days(start.start.replace(day=int(match["day"])), end.start.replace(day=int(match["last"])))


def _month(match: re.Match[str], _: Spoken) -> Interval:
    return part_of(calendar.month(int(match["year"]), MONTHS[match["month"].lower()]), match)


def _yearless_month(match: re.Match[str], spoken: Spoken) -> Interval | None:
    if not named(match["month"]) or is_habit(match, spoken):
        return None
    return part_of(calendar.yearless(spoken.on, MONTHS[match["month"].lower()], None, lean(match, spoken)), match)


def _year(match: re.Match[str], _: Spoken) -> Interval:
    return part_of(calendar.year(int(match["year"])), match)


def _quarter(match: re.Match[str], _: Spoken) -> Interval:
    year, last = int(match["year"]), int(match["quarter"]) * 3
    return Interval(calendar.month(year, last - 2).start, calendar.month(year, last).end)


def _nth_of_month(match: re.Match[str], spoken: Spoken) -> Interval | None:
    """The first weekend of August, the last week of May, the second Friday in June."""
    first = _dated(match, MONTHS[match["month"].lower()], 1, spoken)
    last = calendar.month(first.year, first.month).end
    nth, unit = _NTH.get(match["nth"].lower()), match["unit"].lower()
    if unit == "week":
        start = last - timedelta(days=6) if nth is None else first + timedelta(days=7 * nth)
        return calendar.days(start, start + timedelta(days=6))
    number = 5 if unit == "weekend" else WEEKDAYS[unit]
    if nth is None:
        start = last - timedelta(days=(last.weekday() - number) % 7)
    else:
        start = first + timedelta(days=(number - first.weekday()) % 7 + 7 * nth)
    return calendar.days(start, start + timedelta(days=unit == "weekend"))


def _holiday(match: re.Match[str], spoken: Spoken) -> Interval:
    number, monthday = _HOLIDAYS[match["holiday"].lower().replace("’", "'")]
    turn = match["turn"].lower()
    side = PAST if turn in {"last", "this past"} else FUTURE if turn == "next" else lean(match, spoken)
    return calendar.yearless(spoken.on, number, monthday, side)


def _monthday(match: re.Match[str], spoken: Spoken) -> Interval:
    """On the 15th: of this month or the one beside it, by the verb."""
    on, side = spoken.on, lean(match, spoken)
    near = [calendar.month(on.year, on.month + shift).start.replace(day=int(match["day"])) for shift in (-1, 0, 1)]
    if side == PAST:
        return calendar.day(max(one for one in near if one <= on))
    return calendar.day(min(one for one in near if one >= on))


_UNTIL_MONTH = rf"(?P<until>{any_of(MONTHS)})\b\.?"
_FROM = r"(?:,?\s(?P<from>(?:19|20)\d\d))?"
_NO_DAYS = "(?P<day>(?!))?(?P<last>(?!))?"
RULES = (
    rule(
        rf"\b(?P<day>\d{{1,2}}){_ORDINAL}\s{MONTH}{_FROM}\s?[-–]\s?(?P<last>\d{{1,2}}){_ORDINAL}\s{_UNTIL_MONTH},?\s{_YEAR}",
        _span,
    ),
    rule(
        rf"\b{MONTH}\s(?P<day>\d{{1,2}}){_ORDINAL}{_FROM}\s?[-–]\s?{_UNTIL_MONTH}\s(?P<last>\d{{1,2}}){_ORDINAL},?\s{_YEAR}",
        _span,
    ),
    rule(rf"\b{_NO_DAYS}{MONTH}{_FROM}\s?[-–]\s?{_UNTIL_MONTH},?\s{_YEAR}", _span),
    rule(rf"{_WEEK_OF}\b(?:the\s)?{_DAY}\s(?:of\s)?{MONTH}(?:,?\s(?:of\s)?{_YEAR})?", _month_day),
    rule(rf"{_WEEK_OF}\b{MONTH}\s(?:the\s)?{_DAY}(?:,?\s{_YEAR})?(?![\d:])", _month_day),
    rule(rf"{PART}\b{MONTH},?\s(?:of\s)?{_YEAR}", _month),
    rule(rf"{_BEFORE_MONTH}\s{PART}{MONTH}(?!,?\s?\d)", _yearless_month),
    rule(
        rf"\b(?P<part>early|mid|late|(?:the\s)?(?:beginning|start|middle|end)\sof)[\s-]{MONTH}(?!,?\s?\d)",
        _yearless_month,
    ),
    rule(rf"\b(?:in|since|of|until|till|by|during|from|around|year|through)\s{PART}{_YEAR}", _year),
    rule(rf"\b(?P<part>early|mid|late)[\s-]{_YEAR}", _year),
    rule(rf"\bQ(?P<quarter>[1-4])\s(?:of\s)?{_YEAR}", _quarter),
    rule(
        rf"\b(?P<nth>first|second|third|fourth|last)\s(?P<unit>week|weekend|{any_of(WEEKDAYS)})"
        rf"\s(?:of|in)\s{MONTH}(?:,?\s(?:of\s)?{_YEAR})?",
        _nth_of_month,
    ),
    rule(rf"\b(?P<turn>on|at|for|over|last|this\spast|next|this)\s(?P<holiday>{any_of(_HOLIDAYS)})\b", _holiday),
    rule(
        r"\bon\sthe\s(?P<day>\d{1,2})(?:st|nd|rd|th)\b(?!\s(?:floor|anniversary|birthday|day|time|try|street|century))",
        _monthday,
    ),
)
