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
_DAY_NAME = rf"(?:{any_of(WEEKDAYS)})\b"
_DAYS_NAMED = rf"{_DAY_NAME}(?:(?:\s?[,/&–-]\s?|\s)(?:(?:and|or|to|through)\s)?(?:on\s)?{_DAY_NAME}){{0,6}}"
_HABIT = re.compile(
    rf"\b(?:every|each|most|some|any|alternate)\s(?:(?:other|second|third|single|year|month|week)\s){{0,2}}(?:(?:in|on|around)\s)?"
    rf"(?:{_DAYS_NAMED}|(?:\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?)?(?:{any_of(MONTHS)})\b)"
    rf"|\b{_DAYS_NAMED}\s(?:(?:and|or)\s{_DAY_NAME}\s)?(?:early\s|late\s)?(?:mornings|afternoons|evenings|nights|lunchtimes)\b"
    rf"|\b(?:first|second|third|fourth|last)\s{_DAY_NAME}\s(?:of|in)\s(?:every|each|the)\smonth\b"
    rf"|\b{_DAYS_NAMED},?\s(?:of\s)?(?:every|each)\s(?:week|month)\b",
    re.IGNORECASE,
)
PART = rf"(?:\b(?P<part>{any_of(PARTS)})[\s-](?:the\s)?)?"

_LOOKING_BACK = re.compile(
    r"(?<!\bbe\s)(?<!\bis\s)(?<!\bare\s)(?<!\bwill\shave\s)\b(?:was|were|did|had|went|got|came|took|made|saw|met|found|gave|said|told|won|lost|ran|bought|began|left|been|felt"
    r"|spent|ate|wrote|heard|thought|knew|brought|caught|flew|drove|became|spoke|sold|built|grew|chose|slept|stayed|kept|just|since|ago|last|(?!need)[a-z]{2,20}ed)\b",
    re.IGNORECASE,
)
_LOOKING_AHEAD = re.compile(
    r"\b(?:will|won't|shall|going|gonna|plan|plans|planning|hope|hoping|want|wanna|can't\swait|forward|upcoming|next|coming"
    r"|should|must|need|let's|see\syou|due|until|by|excited\sfor|have\san?|heading|leaving|moving|scheduled|expects?|expecting"
    r"|(?:decided|planned|agreed|chose|chosen|promised|intend(?:s|ed)?|expected|hoped|wanted|arranged|supposed|offered)\s(?:not\s)?(?:to|for|on)"
    r"|decided\sthat|(?:is|are|'s|'re)\s(?:expected|planned|booked|set|reserved|supposed)"
    r"|(?:am|is|are|i'm|[a-z]{2,12}'(?:s|re))\s(?:not\s)?(?!(?:being|doing|feeling|having)\b)[a-z]{3,20}ing"
    r"|opens|arrives|begins|starts|ends|closes|departs|lands|expires|launches|finishes|takes\splace"
    r"|(?:we|they|i)\s(?:open|start|begin|arrive|leave|fly|depart|close|launch|move|travel|return))\b|'ll\b",
    re.IGNORECASE,
)
# What people speak of while it lies ahead, where no verb says otherwise.
_AWAITED = re.compile(
    r"\b(?:appointment|deadline|due\sdate|interview|exam|flight|delivery|opening|launch|reservation|booking|check-?up|wedding|surgery|(?:is|are|'s)\s(?:on|in))\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\b(?:for|by|until|till|due|due\son)\s(?:the\s)?$", re.IGNORECASE)
_SHIFTED = re.compile(
    r"\b(?:moved|changed|postponed|pushed|rescheduled|shifted|delayed|extended|put\soff)\b[^.!?;]{0,60}\bto\s(?:the\s)?$",
    re.IGNORECASE,
)


def rule(pattern: str, read: Callable[[re.Match[str], Spoken], Interval | None]) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), read)


def lean(match: re.Match[str], spoken: Spoken) -> int:
    before = spoken.text[max(0, match.start() - 80) : match.start()]
    if _UNTIL.search(before[-12:]) or _SHIFTED.search(before):
        return calendar.FUTURE  # "I've booked a table for 3 May", "we moved it to 5 May"
    side = calendar.lean_of(spoken, match.start(), match.end(), _LOOKING_BACK, _LOOKING_AHEAD)
    return side or calendar.awaited(spoken, match.start(), match.end(), _AWAITED)


def is_habit(match: re.Match[str], spoken: Spoken) -> bool:
    """Whether the day or month is one of many: "every Monday and Thursday", "on Saturday mornings"."""
    name = match.start("weekday") if "weekday" in match.re.groupindex else match.start("month")
    return calendar.lies_in(spoken, name, _HABIT)


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
