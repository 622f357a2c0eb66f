"""Whether the days that a model names stand in what was said, or follow from it."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Protocol

from memory.batches import Part
from memory.observation import Interval
from memory.turn import Turn

_SLACK = timedelta(days=1)  # weeks may begin on Sunday
_YEAR = 366  # days around a turn in which a date without a year is looked for
_COARSE = 14  # days: from a mention longer than this, no single day follows
_NEAR = 31  # days around a turn in which a language that nobody here resolves may mean any day
_DAY = timedelta(days=1)

# Greek to Georgian and beyond, kana and Hangul: scripts whose dates are not resolved.
_UNREAD_SCRIPT = re.compile(r"[\u0370-\u1cff\u3040-\u30ff\uac00-\ud7af]")


class Dated(Protocol):
    """Where a text, from character `start` to `end`, speaks of days, and of which."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def interval(self) -> Interval: ...


Resolve = Callable[[str, datetime], Sequence[Dated]]


class Evidence:
    """What some turns say of days: mentions resolved from each turn's own time, the numbers, the turns' own days."""

    def __init__(self, turns: Sequence[Turn], resolve: Resolve) -> None:
        texts = [_words(turn) for turn in turns]
        self.mentions = [
            days
            for turn, text in zip(turns, texts, strict=True)
            for found in resolve(text, turn.said_at)
            for days in _readings(found.interval, text[found.start : found.end], turn.said_at, resolve)
        ]
        self._days = [Interval(turn.said_at.date(), turn.said_at.date()) for turn in turns]
        self._text = "\n".join(texts).casefold()
        self._words = set(re.findall(r"\w+", self._text))
        self._numbers = _numbers(self._text)
        self._unread = not self.mentions and any(map(_UNREAD_SCRIPT.search, texts))

    def settle(self, claimed: Interval) -> Interval | None:
        """The days that the evidence gives for `claimed`, as precise as it was said; None where it gives none."""
        near = [mention for mention in self.mentions if _supports(mention, claimed)]
        if not near:
            return claimed if self._literal(claimed) or self._beyond_reading(claimed) else None
        # "From the 3rd to the 5th" are two mentions, and one stretch of days.
        ends = {mention.start for mention in near} | {mention.end for mention in near}
        if len(near) > 1 and {claimed.start, claimed.end} <= ends:
            return claimed
        return max(near, key=lambda mention: _overlap(mention, claimed))

    def allows(self, words: str, told: Interval) -> bool:
        """Whether a text may tell of these days in these words: mentioned, or the turns' own days, or words of theirs."""
        if any(_supports(mention, told) for mention in [*self.mentions, *self._days]):
            return True
        # "Tuesday" is next week where something is planned and last week where it is told: the word itself was said.
        said = words.casefold() in self._text or set(re.findall(r"\w+", words.casefold())) <= self._words
        return said or self._literal(told) or self._beyond_reading(told)

    def _literal(self, told: Interval) -> bool:
        """The numbers themselves stand there, in a form that is ambiguous or of a language that is not resolved."""
        days = {told.start.day, told.end.day} if _length(told) < _COARSE else set()
        return {told.start.year, told.end.year} | days <= self._numbers

    def _beyond_reading(self, told: Interval) -> bool:
        if not self._unread:
            return False
        distance = min(abs((told.start - day.start).days) for day in self._days)
        return distance <= _NEAR or (distance <= _YEAR and {told.start.day, told.end.day} <= self._numbers)


def carries(text: str, days: Interval, at: datetime, resolve: Resolve) -> bool:
    """Whether `text`, said at `at`, names both ends of `days`: in words that resolve, or by bare numbers where none do."""
    mentions = [found.interval for found in resolve(text, at)]
    if {days.start} <= {mention.start for mention in mentions} and {days.end} <= {mention.end for mention in mentions}:
        return True
    if all(end.isoformat() in text for end in (days.start, days.end)):
        return True
    return not mentions and {days.start.year, days.start.day, days.end.year, days.end.day} <= _numbers(text)


def interval(value: object) -> Interval | None:
    """A model's date: `2026-03-02`, `2026-03`, `2026`, two of them with anything between, a pair, a start and an end."""
    if isinstance(value, dict):
        value = list(value.values())
    text = "/".join(map(str, value)) if isinstance(value, list) else str(value or "")
    spans = [_days(match) for match in re.finditer(r"(?<!\d)(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d-])", text)]
    named = [span for span in spans if span is not None]
    if not named:
        return None
    return Interval(min(span.start for span in named), max(span.end for span in named))


def _readings(days: Interval, words: str, said_at: datetime, resolve: Resolve) -> Iterator[Interval]:
    """What a mention may mean: without a year, "5 May" is the next one or the last, whichever its resolver chose."""
    yield days
    if re.search(r"\d{4}", words) or _is_relative(days, words, said_at, resolve):
        return
    for years in (-1, 1):
        other = _moved(days, years)
        if other and abs((other.start - said_at.date()).days) <= _YEAR:
            yield other


def _is_relative(days: Interval, words: str, said_at: datetime, resolve: Resolve) -> bool:
    """Whether the words mean other days of the year when they are said at another time."""
    later = [found.interval for found in resolve(words, said_at + timedelta(days=40))]
    ends = (days.start.month, days.start.day, days.end.month, days.end.day)
    return not any((at.start.month, at.start.day, at.end.month, at.end.day) == ends for at in later)


def _moved(days: Interval, years: int) -> Interval | None:
    try:
        return Interval(days.start.replace(year=days.start.year + years), days.end.replace(year=days.end.year + years))
    except ValueError:  # 29 February, or the end of the calendar
        return None


def _words(turn: Turn) -> str:
    lead = turn.lead if isinstance(turn, Part) else ""
    return "\n".join([lead, turn.text, *(call.arguments for call in turn.tool_calls)])


def _numbers(text: str) -> set[int]:
    return set(map(int, re.findall(r"(?<!\d)\d{1,4}(?!\d)", text)))


def _supports(mention: Interval, told: Interval) -> bool:
    """They meet, and what is told is not much finer than what was mentioned."""
    slack = _SLACK if mention.start != mention.end else timedelta(0)
    if told.start > mention.end + slack or told.end < mention.start - slack:
        return False
    finer = _length(mention) > _COARSE and 2 * _length(told) < _length(mention)
    return not finer or told.start == mention.start or told.end == mention.end


def _overlap(one: Interval, other: Interval) -> float:
    common = (min(one.end, other.end) - max(one.start, other.start)).days + 1
    return common / max(_length(one), _length(other))


def _length(days: Interval) -> int:
    return (days.end - days.start).days + 1


def _days(match: re.Match[str]) -> Interval | None:
    year, month, day = match.groups()
    try:
        start = date(int(year), int(month or 1), int(day or 1))
        if day:
            return Interval(start, start)
        after = date(start.year + (not month or start.month == 12), start.month % 12 + 1 if month else 1, 1)
        return Interval(start, after - _DAY)
    except (ValueError, OverflowError):
        return None
