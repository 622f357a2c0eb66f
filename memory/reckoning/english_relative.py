"""English dates that count from the day on which they are said."""

import re

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import FUTURE, PAST, UNKNOWN, Spoken
from memory.reckoning.english import (
    COUNT,
    MONTH,
    MONTHS,
    PART,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    any_of,
    count,
    is_habit,
    lean,
    named,
    part_of,
    rule,
)

_WORDS = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "last evening": -1, "today": 0, "tonight": 0,
    "this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip
_SEASONS = {"spring": "spring", "summer": "summer", "autumn": "autumn", "fall": "autumn", "winter": "winter"}
_BACK = {"last", "past", "this past", "the past", "previous", "the previous"}
_TURN = r"(?P<turn>this\spast|this\scoming|last|past|previous|this|next|coming|upcoming)"
_SEVERAL = (
    r"(?P<count>\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty)\s(?P<unit>month|year)s"
)
# "Every Friday", "on weekends", "most weekends": a habit has no date.
_ONCE = r"(?<!\bevery\s)(?<!\beach\s)(?<!\bmost\s)(?<!\bsome\s)(?<!\bany\s)"


def _word(match: re.Match[str], spoken: Spoken) -> Interval:
    return calendar.day(spoken.on, _WORDS[" ".join(match["word"].lower().split())])


def _turned(match: re.Match[str], spoken: Spoken) -> Interval:
    """Last week, this month, the end of next year."""
    turn, unit = " ".join(match["turn"].lower().split()), match["unit"].lower()
    if unit == "weekend":
        return _turned_weekend(turn, match, spoken)
    return part_of(calendar.shifted(spoken.on, _shift(turn), unit), match)


def _shift(turn: str) -> int:
    return -1 if turn in _BACK else 0 if turn == "this" else 1


def _turned_weekend(turn: str, match: re.Match[str], spoken: Spoken) -> Interval:
    early = spoken.on.weekday() < 5
    if turn == "this" and spoken.on.weekday() < 3 and lean(match, spoken) == PAST:
        return calendar.weekend(spoken.on, -1)  # "this weekend was fun", said on a Monday
    if early and turn in {"coming", "upcoming", "this coming"}:
        return calendar.weekend(spoken.on)
    return calendar.weekend(spoken.on, _shift(turn))


def _twice_turned(match: re.Match[str], spoken: Spoken) -> Interval:
    """The week before last, the weekend after next."""
    return calendar.shifted(spoken.on, -2 if "last" in match["turn"].lower() else 2, match["unit"].lower())


def _the_weekend(match: re.Match[str], spoken: Spoken) -> Interval | None:
    side = lean(match, spoken)
    if side == UNKNOWN:
        return None
    return calendar.weekend(spoken.on, -1 if side == PAST and spoken.on.weekday() < 5 else 0)


def _ago(match: re.Match[str], spoken: Spoken) -> Interval | None:
    if match["count"].lower().startswith("half"):
        return calendar.shifted(spoken.on, -6, "month") if match["unit"].lower() == "year" else None
    if (number := count(match["count"])) == 1 and _unit(match) == "year":
        return calendar.shifted(spoken.on, -12, "month")  # "a year ago" is about this time of last year, not all of it
    return calendar.shifted(spoken.on, -number, _unit(match))


def _ahead(match: re.Match[str], spoken: Spoken) -> Interval | None:
    """In two weeks, two weeks later: ahead, unless the verb says how long something took."""
    if match["count"].lower().startswith("half") or lean(match, spoken) == PAST:
        return None
    return calendar.shifted(spoken.on, count(match["count"]), _unit(match))


def _unit(match: re.Match[str]) -> str:
    return match["unit"].lower().replace("night", "day")


def _lasting(match: re.Match[str], spoken: Spoken) -> Interval:
    """For three years now: since when."""
    return calendar.shifted(spoken.on, -count(match["count"]), match["unit"].lower())


def _weekday(match: re.Match[str], spoken: Spoken) -> Interval | None:
    if not named(match["weekday"]) or is_habit(match, spoken):
        return None
    number, turn = WEEKDAYS[match["weekday"].lower()], " ".join((match["turn"] or "").lower().split())
    if turn in _BACK:
        return calendar.weekday(spoken.on, number, PAST)
    side = FUTURE if turn in {"next", "coming", "upcoming", "this coming"} else lean(match, spoken)
    return calendar.weekday(spoken.on, number, side)


def _turned_month(match: re.Match[str], spoken: Spoken) -> Interval | None:
    """Last May, next May: the one that is over, or to come."""
    if not named(match["month"]):
        return None
    number, on, turn = MONTHS[match["month"].lower()], spoken.on, " ".join(match["turn"].lower().split())
    if turn == "this":
        return calendar.month(on.year, number)
    if turn in _BACK:
        return calendar.month(on.year - (number >= on.month), number)
    return calendar.month(on.year + (number <= on.month), number)


def _season(match: re.Match[str], spoken: Spoken) -> Interval:
    name, on = _SEASONS[match["season"].lower()], spoken.on
    if match["year"]:
        return calendar.season(int(match["year"]), name)
    turn = " ".join((match["turn"] or "").lower().split())
    newest = calendar.nearest_season(on, name, PAST)
    if turn in _BACK:
        return newest if newest.end < on else calendar.season(newest.start.year - 1, name)
    if turn == "next":
        return calendar.season(newest.start.year + 1, name)
    return calendar.nearest_season(on, name, lean(match, spoken) or FUTURE)


RULES = (
    rule(
        rf"(?<!like\s)(?<!like\sjust\s)(?<!only\s)\b(?P<word>{any_of(_WORDS).replace(chr(92) + ' ', chr(92) + 's')})\b",
        _word,
    ),
    rule(rf"{PART}{_ONCE}\b{_TURN}\s(?P<unit>week|weekend|month|year)\b(?!\s(?:of|in)\s[A-Z])", _turned),
    rule(r"\b(?:the\s)?(?P<unit>week|weekend|month|year)\s(?P<turn>before\slast|after\snext)\b", _twice_turned),
    rule(r"\b(?:over|at|on|during|for)\sthe\s(?P<turn>)weekend\b(?!s)", _the_weekend),
    rule(rf"\b(?:(?:about|around|almost|nearly|over|roughly)\s)?{COUNT}\s{UNIT}\s(?:ago|back)\b", _ago),
    rule(rf"\b(?:in|within)\s(?:about\s|around\s)?{COUNT}\s{UNIT}(?:'?\stime)?", _ahead),
    rule(rf"\b{COUNT}\s{UNIT}\s(?:from\s(?:now|today)|later)\b", _ahead),
    rule(rf"\bfor\s(?:(?:about|around|almost|over|the\s(?:past|last))\s)?{_SEVERAL}(?:\snow)?\b", _lasting),
    rule(rf"\b{_SEVERAL}\snow\b", _lasting),
    rule(rf"{_ONCE}\b(?:{_TURN}\s|on\s)?{WEEKDAY}(?!s\b)", _weekday),
    rule(rf"\b{_TURN}\s{MONTH}(?!,?\s?\d)", _turned_month),
    rule(rf"\b(?P<turn>)(?P<season>{any_of(_SEASONS)})\s(?:of\s)?(?P<year>(?:19|20)\d\d)\b", _season),
    rule(rf"{_ONCE}\b{_TURN}\s(?P<season>{any_of(_SEASONS)})\b(?P<year>)", _season),
)
