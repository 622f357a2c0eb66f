"""Dates of a language that is given by its words alone: months, days, units, and what stands around them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import FUTURE, PAST, UNKNOWN, Rule, Spoken

_Read = Callable[[re.Match[str], Spoken], Interval | None]


@dataclass(frozen=True, slots=True)
class Tongue:
    """The words of a language, lower case; patterns are of regular expressions, without case.

    `counted_back` and `counted_ahead` hold "{n}", the count with its unit: "vor {n}", "{n} fa". `habit` matches what
    stands before a day that is one of many, `back` and `ahead` the verbs that look there; behind `never_after` a word
    of `words` means something else.
    """

    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    words: Mapping[str, int]
    units: Mapping[str, str]
    counts: Mapping[str, int]
    last: str
    next: str
    this: str
    counted_back: tuple[str, ...]
    counted_ahead: tuple[str, ...]
    before_month: str
    before_year: str
    before_weekday: str
    turn_follows: bool
    habit: str
    back: str
    ahead: str
    never_after: str = r"(?!)"

    def vocabulary(self) -> Iterator[str]:
        """The words, in lower case, of which at least one stands in each of its dates."""
        for name in (*self.months, *self.weekdays, *self.words, *self.units):
            yield name.split()[-1].split("-")[-1].split("'")[-1]


def rules_of(tongue: Tongue) -> tuple[Rule, ...]:
    """The ways in which the language writes a date, the more particular first."""
    reader = _Reader(tongue)
    month, unit = rf"(?P<month>{_any(tongue.months)})\b\.?", rf"(?P<unit>{_any(tongue.units)})\b"
    weekday = rf"(?P<weekday>{_any(tongue.weekdays)})\b"
    year = r"(?P<year>(?:19|20)\d\d)\b"
    found = [
        _rule(
            rf"\b(?P<day>\d{{1,2}})(?:\.|er|º|°)?(?:\s?[-–]\s?(?P<last>\d{{1,2}})\.?)?\s(?:de\s|di\s)?{month}(?:,?\s{year})?",
            reader.month_day,
        ),
        _rule(rf"\b{month}\s{year}", reader.month),
        _rule(rf"\b(?:{tongue.before_month})\s{month}(?P<year>(?!))?", reader.month),
        _rule(rf"\b(?:{tongue.before_year})\s{year}", lambda match, _: calendar.year(int(match["year"]))),
        _rule(rf"\b(?P<word>{_any(tongue.words)})\b", reader.word),
    ]
    for shift, turn in ((-1, tongue.last), (1, tongue.next), (0, tongue.this)):
        found += [_rule(pattern, reader.turned(shift)) for pattern in _turned(turn, unit, follows=tongue.turn_follows)]
        found += [
            _rule(pattern, reader.on_weekday(shift)) for pattern in _turned(turn, weekday, follows=tongue.turn_follows)
        ]
    count = rf"(?P<count>\d{{1,3}}|{_any(tongue.counts)})\s{unit}"
    for sign, patterns in ((-1, tongue.counted_back), (1, tongue.counted_ahead)):
        found += [_rule(rf"\b{pattern.replace('{n}', count)}\b", reader.counted(sign)) for pattern in patterns]
    found.append(_rule(rf"\b(?:{tongue.before_weekday})\s{weekday}", reader.on_weekday(0)))
    return tuple(found)


def _turned(turn: str, what: str, *, follows: bool) -> list[str]:
    if not follows:
        return [rf"\b(?:{turn})\s{what}"]
    article = r"\b(?:(?:la|le|lo|il|l['’])\s?)?\b"
    return [rf"{article}(?:{turn})\s{what}", rf"{article}{what}\s(?:{turn})\b"]


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _rule(pattern: str, read: _Read) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), read)


class _Reader:
    """Reads the matches of one language's rules."""

    def __init__(self, tongue: Tongue) -> None:
        self._tongue = tongue
        self._back = re.compile(rf"\b(?:{tongue.back})\b", re.IGNORECASE)
        self._ahead = re.compile(rf"\b(?:{tongue.ahead})\b", re.IGNORECASE)
        self._never = re.compile(rf"\b(?:{tongue.never_after})\s$", re.IGNORECASE)
        self._habit = re.compile(rf"\b(?:{tongue.habit})\s(?:\S{{1,12}}\s)?$", re.IGNORECASE)

    def month_day(self, match: re.Match[str], spoken: Spoken) -> Interval | None:
        number, first = self._tongue.months[match["month"].lower()], int(match["day"])
        if match["year"]:
            start = date(int(match["year"]), number, first)
        elif self._is_habit(match, spoken):
            return None
        else:
            start = calendar.yearless(spoken.on, number, first, self._lean(match, spoken)).start
        return calendar.days(start, start.replace(day=int(match["last"] or first)))

    def month(self, match: re.Match[str], spoken: Spoken) -> Interval | None:
        number = self._tongue.months[match["month"].lower()]
        if match["year"]:
            return calendar.month(int(match["year"]), number)
        if self._is_habit(match, spoken):
            return None
        return calendar.yearless(spoken.on, number, None, self._lean(match, spoken))

    def word(self, match: re.Match[str], spoken: Spoken) -> Interval | None:
        if self._never.search(spoken.text[max(0, match.start() - 20) : match.start()]):
            return None
        return calendar.day(spoken.on, self._tongue.words[" ".join(match["word"].lower().split())])

    def turned(self, shift: int) -> _Read:
        def read(match: re.Match[str], spoken: Spoken) -> Interval:
            return calendar.shifted(spoken.on, shift, self._tongue.units[match["unit"].lower()])

        return read

    def counted(self, sign: int) -> _Read:
        def read(match: re.Match[str], spoken: Spoken) -> Interval | None:
            if sign > 0 and self._lean(match, spoken) == PAST:
                return None  # how long it took
            word = match["count"].lower()
            count = int(word) if word.isdigit() else self._tongue.counts[word]
            return calendar.shifted(spoken.on, sign * count, self._tongue.units[match["unit"].lower()])

        return read

    def on_weekday(self, side: int) -> _Read:
        def read(match: re.Match[str], spoken: Spoken) -> Interval | None:
            if side == UNKNOWN and self._is_habit(match, spoken):
                return None
            lean = side or self._lean(match, spoken) or FUTURE
            return calendar.weekday(spoken.on, self._tongue.weekdays[match["weekday"].lower()], lean)

        return read

    def _lean(self, match: re.Match[str], spoken: Spoken) -> int:
        return calendar.lean_of(spoken, match.start(), match.end(), self._back, self._ahead)

    def _is_habit(self, match: re.Match[str], spoken: Spoken) -> bool:
        return self._habit.search(spoken.text[max(0, match.start() - 30) : match.start()]) is not None
