"""When a text speaks of: its dates, absolute and relative, as days of the calendar."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from memory import dates_calendar as calendar
from memory import dates_chinese as chinese
from memory import dates_english_absolute as english_absolute
from memory import dates_english_relative as english_relative
from memory import dates_romance as romance
from memory.dates_calendar import Found, Rule, Spoken
from memory.observation import Interval


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a text (characters `start` to `end`) speaks of days, and which."""

    start: int
    end: int
    interval: Interval


def resolve(text: str, said_at: datetime) -> list[Mention]:
    """The dates in `text`, in its order, never overlapping; relative ones count from the day of `said_at` in its own offset.

    English, Portuguese, Spanish and Chinese. What is vague ("recently"), habitual ("every Friday") or ambiguous
    (03/04/2023 in English) yields none.
    """
    spoken = Spoken(text, said_at.date())
    found = [one for rule in _rules(text) for one in rule.find(spoken)]
    return [Mention(start, end, interval) for start, end, interval in _longest(found) if interval is not None]


def _rules(text: str) -> Iterable[Rule]:
    """The rules that may find something: most texts hold no word of a date at all, and looking for one is cheap."""
    if _HAS_DIGITS(text):
        yield from _NUMERIC
    if _MAY_BE_ENGLISH(text):
        yield from english_absolute.RULES
        yield from english_relative.RULES
    if _MAY_BE_ROMANCE(text):
        yield from romance.RULES
    if _HAS_DIGITS(text) and romance.SPOKEN_HERE.search(text):
        yield romance.DAY_FIRST
    if _MAY_BE_CHINESE(text):
        yield from chinese.RULES


def _longest(found: list[Found]) -> list[Found]:
    """Of overlapping finds the longest stays, and of two equally long the one whose rule stands first."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda each: (each[0], each[0] - each[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
        elif one[1] - one[0] > kept[-1][1] - kept[-1][0]:
            kept[-1] = one
    return kept


def _iso(match: re.Match[str], _: Spoken) -> Interval:
    return calendar.day(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _numeric(match: re.Match[str], _: Spoken) -> Interval | None:
    """Day first or month first: only where the numbers, or the dots, leave no choice."""
    first, second, year = int(match["first"]), int(match["second"]), calendar.full_year(match["year"])
    if match["mark"] == ".":
        return calendar.day(date(year, second, first))
    if first != second and first <= 12 and second <= 12:
        return None
    return calendar.day(date(year, min(first, second), max(first, second)))


_NUMERIC = (
    Rule(re.compile(r"\b(?P<year>(?:19|20)\d\d)([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?=\D|T|$)"), _iso),
    Rule(
        re.compile(r"\b(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>(?:19|20)\d\d)\b"),
        _numeric,
    ),
    Rule(re.compile(r"\b(?P<first>\d{1,2})(?P<mark>/)(?P<second>\d{1,2})/(?P<year>\d\d)\b(?!/)"), _numeric),
)
_HAS_DIGITS = re.compile(r"\d[-/.]\d").search
_MAY_BE_ENGLISH = re.compile(
    r"\b(?:(?:yester|to)day|to(?:night|morrow)|ago|back|last|past|previous|this|next|(?:up)?coming|weekend|week|later|now|from|within|in"
    r"|(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:day)?|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?"
    r"|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|christmas|halloween|eve|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
).search
_MAY_BE_ROMANCE = re.compile(
    r"\b(?:ontem|anteontem|hoje|amanh[ãa]|ayer|antier|anteayer|anoche|hoy|mañana|semanas?|m[êe]s|meses|a[nñ]os?|d[ií]as?|próxim[oa]|de|desde|ano"
    r"|segunda|ter[çc]a|quarta|quinta|sexta|s[áa]bado|domingo|lunes|martes|mi[ée]rcoles|jueves|viernes|em|en|esta|est[ea]|noche)\b",
    re.IGNORECASE,
).search
_MAY_BE_CHINESE = re.compile(r"[天日晚早夜周週星期月年礼禮号號]").search
