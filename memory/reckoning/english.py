"""The words in which English dates are made, and which way a sentence's verb looks."""

import re
from collections.abc import Callable, Iterable

from memory.observation import Interval
from memory.reckoning import calendar
from memory.reckoning.calendar import Rule, Spoken
from memory.wordlist import listed

_MONTH_NAMES = listed(
    """
    january february march april may june july august september october november december
    """
)
_DAY_NAMES = listed("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES, 1)} | {name[:3]: n for n, name in enumerate(_MONTH_NAMES, 1)}
MONTHS |= {"sept": 9}
WEEKDAYS = {name: n for n, name in enumerate(_DAY_NAMES)} | {name[:3]: n for n, name in enumerate(_DAY_NAMES)}
WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
_COUNT_NAMES = listed("one two three four five six seven eight nine ten eleven twelve")
COUNTS = {name: n for n, name in enumerate(_COUNT_NAMES, 1)}
COUNTS |= {"a": 1, "an": 1, "fifteen": 15, "twenty": 20, "thirty": 30}
PARTS = {"early": "early", "the beginning of": "early", "the start of": "early", "beginning of": "early"}
PARTS |= {"mid": "mid", "the middle of": "mid", "late": "late", "the end of": "late", "end of": "late"}

# Words that are also names of months and days count only with a capital, or with a number beside them.
_AMBIGUOUS = {"may", "march", "mar", "dec", "jan", "jun", "oct", "nov", "sun", "sat", "mon", "wed", "fri"}


def any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


MONTH = rf"(?P<month>{any_of(MONTHS)})\b\.?"
WEEKDAY = rf"(?P<weekday>{any_of(WEEKDAYS)})\b"
COUNT = rf"(?P<count>\d{{1,3}}|{any_of(COUNTS)}|(?:a\s)?couple(?:\sof)?|half\sa)"
UNIT = r"(?P<unit>day|night|weekend|week|month|year)s?\b"
PART = rf"(?:\b(?P<part>{any_of(PARTS)})[\s-](?:the\s)?)?"

_LOOKING_BACK = re.compile(
    r"\b(?:was|were|did|had|went|got|came|took|made|saw|met|found|gave|said|told|won|lost|ran|bought|began|left|been|felt"
    r"|spent|ate|wrote|heard|thought|knew|brought|caught|flew|drove|became|spoke|sold|built|grew|chose|slept|stayed|kept|just|since|ago|last|(?!need)[a-z]{2,20}ed)\b",
    re.IGNORECASE,
)
_LOOKING_AHEAD = re.compile(
    r"\b(?:will|won't|shall|going|gonna|plan|plans|planning|hope|hoping|want|wanna|can't\swait|forward|upcoming|next|coming"
    r"|should|must|need|let's|see\syou|due|until|by|excited\sfor|have\san?|heading|leaving|moving|scheduled)\b|'ll\b",
    re.IGNORECASE,
)


def rule(pattern: str, read: Callable[[re.Match[str], Spoken], Interval | None]) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), read)


def lean(match: re.Match[str], spoken: Spoken) -> int:
    if (
        spoken.text[max(0, match.start() - 6) : match.start()]
        .lower()
        .endswith(("for ", "by ", "until ", "due ", "due on "))
    ):
        return calendar.FUTURE  # "I've booked a table for 3 May"
    return calendar.lean_of(spoken, match.start(), match.end(), _LOOKING_BACK, _LOOKING_AHEAD)


def named(word: str) -> bool:
    """Whether "may", "sun" and their like really are a month or a day here."""
    return word.lower() not in _AMBIGUOUS or word[0].isupper()


def count(word: str) -> int:
    word = word.lower()
    if "couple" in word:
        return 2
    return int(word) if word.isdigit() else COUNTS[word]


def part_of(whole: Interval, match: re.Match[str]) -> Interval:
    """The part of a stretch that the match names ("the end of"), or all of it."""
    return calendar.part(whole, PARTS[match["part"].lower()]) if match["part"] else whole
