"""Stretches of days as people name them, seen from the day on which they spoke."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from memory.observation import Interval

Found = tuple[int, int, Interval | None]
SEASON_MONTHS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "winter": (12, 14)}
PAST, UNKNOWN, FUTURE = -1, 0, 1


_FAR = 100
_SENTENCE_END = re.compile(r"[.!?;\n。！？]")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text and the day on which it was said."""

    text: str
    on: date
    _spans: dict[re.Pattern[str], list[tuple[int, int]]] = field(default_factory=dict)

    def spans(self, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
        """Where `pattern` matches: found once, however many dates ask, so that a text full of dates stays linear."""
        if pattern not in self._spans:
            self._spans[pattern] = [match.span() for match in pattern.finditer(self.text)]
        return self._spans[pattern]


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to write a date: what it looks like, and which days a match of it names (None: none after all)."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], Spoken], Interval | None]

    def find(self, spoken: Spoken) -> Iterator[Found]:
        for match in self.pattern.finditer(spoken.text):
            try:
                interval = self.read(match, spoken)
            except (ValueError, OverflowError):
                yield match.start(), match.end(), None  # 31 February: no such day, and no February either
            else:
                if interval is not None:
                    yield match.start(), match.end(), interval


def day(on: date, shift: int = 0) -> Interval:
    that = on + timedelta(days=shift)
    return Interval(that, that)


def days(start: date, end: date) -> Interval | None:
    return Interval(start, end) if start <= end else None


def week(on: date, shift: int = 0) -> Interval:
    """Monday to Sunday of the week that is `shift` weeks from that of `on`."""
    monday = on + timedelta(days=7 * shift - on.weekday())
    return Interval(monday, monday + timedelta(days=6))


def weekend(on: date, shift: int = 0) -> Interval:
    saturday = on + timedelta(days=7 * shift + 5 - on.weekday())
    return Interval(saturday, saturday + timedelta(days=1))


def month(year: int, number: int) -> Interval:
    """A month; numbers outside 1 to 12 run into the neighbouring years."""
    year, number = year + (number - 1) // 12, (number - 1) % 12 + 1
    first = date(year, number, 1)
    return Interval(first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1))


def year(number: int) -> Interval:
    return Interval(date(number, 1, 1), date(number, 12, 31))


def season(number: int, name: str) -> Interval:
    """The northern season that begins in year `number`."""
    first, last = SEASON_MONTHS[name]
    return Interval(month(number, first).start, month(number, last).end)


def shifted(on: date, count: int, unit: str) -> Interval:
    """`count` units (day, week, weekend, month, year) away from `on`, as wide as the unit."""
    if unit == "day":
        return day(on, count)
    if unit == "week":
        return week(on, count)
    if unit == "weekend":
        return weekend(on, count)
    if unit == "month":
        return month(on.year, on.month + count)
    return year(on.year + count)


def weekday(on: date, number: int, lean: int) -> Interval:
    """The last such weekday before `on`, or the next after it; today's own name means a week away."""
    if lean == PAST:
        return day(on, -((on.weekday() - number) % 7 or 7))
    return day(on, (number - on.weekday()) % 7 or 7)


def yearless(on: date, number: int, monthday: int | None, lean: int) -> Interval:
    """A month, or a day of one, without its year: the nearest, or the nearest on the side that the verb leans to."""
    near = [_in_year(y, number, monthday) for y in (on.year - 1, on.year, on.year + 1)]
    known = [interval for interval in near if interval is not None]
    if lean == PAST:
        known = [interval for interval in known if interval.start <= on] or known
    if lean == FUTURE:
        known = [interval for interval in known if interval.end >= on] or known
    return min(known, key=lambda interval: abs((interval.start - on).days))


def _in_year(number: int, month_number: int, monthday: int | None) -> Interval | None:
    if monthday is None:
        return month(number, month_number)
    try:
        return day(date(number, month_number, monthday))
    except ValueError:
        return None


def nearest_season(on: date, name: str, lean: int) -> Interval:
    """The season of that name that is under way, else the last or the next by `lean`."""
    near = [season(number, name) for number in (on.year - 1, on.year, on.year + 1)]
    for one in near:
        if one.start <= on <= one.end:
            return one
    if lean == PAST:
        return [one for one in near if one.end < on][-1]
    return next(one for one in near if one.start > on)


def part(whole: Interval, name: str) -> Interval:
    """The early, mid or late third of a stretch; what is shorter than a week stays whole."""
    length = (whole.end - whole.start).days + 1
    if length < 7:
        return whole
    third = timedelta(days=length // 3)
    if name == "early":
        return Interval(whole.start, whole.start + third - timedelta(days=1))
    if name == "mid":
        return Interval(whole.start + third, whole.end - third)
    return Interval(whole.end - third + timedelta(days=1), whole.end)


def full_year(digits: str) -> int:
    """A year of two digits belongs to the century that makes it nearest to our own time."""
    number = int(digits)
    if len(digits) > 2:
        return number
    return 2000 + number if number < 70 else 1900 + number


def lean_of(spoken: Spoken, start: int, end: int, past: re.Pattern[str], future: re.Pattern[str]) -> int:
    """Whether the words about a date look back or ahead: the verb nearest to it in its sentence decides.

    A word that both patterns know looks ahead: the future's is the one that is more particular.
    """
    back, ahead = (_distance(spoken, pattern, start, end) for pattern in (past, future))
    if back == ahead == _FAR:
        return UNKNOWN
    return PAST if back < ahead else FUTURE


def awaited(spoken: Spoken, start: int, end: int, nouns: re.Pattern[str]) -> int:
    """FUTURE beside what people only name while it lies ahead, such as a deadline; for sentences without a telling verb."""
    return FUTURE if _distance(spoken, nouns, start, end) < _FAR else UNKNOWN


def lies_in(spoken: Spoken, start: int, pattern: re.Pattern[str]) -> bool:
    """Whether character `start` lies inside a match of `pattern`."""
    spans = spoken.spans(pattern)
    before = bisect_left(spans, (start + 1, 0)) - 1
    return before >= 0 and start < spans[before][1]


def _distance(spoken: Spoken, pattern: re.Pattern[str], start: int, end: int) -> int:
    """Characters to the nearest match of `pattern` that no sentence's end parts from the date."""
    spans = spoken.spans(pattern)
    after = bisect_left(spans, (end, 0))
    gaps = [_gap(spoken.text, end, spans[after][0])] if after < len(spans) else []
    before = bisect_left(spans, (start, 0)) - 1
    if before >= 0:
        gaps.append(_gap(spoken.text, spans[before][1], start))
    return min(gaps, default=_FAR)


def _gap(text: str, start: int, end: int) -> int:
    return end - start if end - start < _FAR and not _SENTENCE_END.search(text, start, end) else _FAR
