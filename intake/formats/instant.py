"""When something was said, as files tell it: RFC 3339, a bare date, Unix seconds or milliseconds, or words."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from intake.messages import EARLIEST_YEAR, LATEST_YEAR
from intake.rfc3339 import instant_from

_KEYS = (
    "at",
    "said_at",
    "created_at",
    "createdAt",
    "create_time",
    "timestamp",
    "date_time",
    "datetime",
    "time",
    "t",
    "date",
)

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WORDS = re.compile(
    r"(?:(?P<hour>\d{1,2}):(?P<minute>\d\d)\s*(?P<half>[ap]m)?\s+on\s+)?(?P<day>\d{1,2})\s+(?P<month>[a-z]{3,9}),?\s+(?P<year>\d{4})"
)
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that is the year 5138


def instant_in(told: Mapping[str, Any]) -> datetime | None:
    """The first time that `told` carries under one of the usual names."""
    for key in _KEYS:
        if (value := told.get(key)) is not None and (instant := instant_of(value)) is not None:
            return instant
    return None


def instant_of(value: Any) -> datetime | None:
    """`value` as an aware time; one without an offset is UTC. None where it is no time that is understood."""
    try:
        instant = _from_text(value.strip()) if isinstance(value, str) else _from_number(value)
    except (ValueError, OverflowError, OSError):
        return None
    if instant is None or not EARLIEST_YEAR <= instant.year <= LATEST_YEAR:
        return None
    offset = instant.utcoffset()
    return instant.replace(tzinfo=UTC) if offset is None or offset % timedelta(minutes=1) else instant


def _from_number(value: Any) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return None
    return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS_FROM else value, tz=UTC)


def _from_text(text: str) -> datetime | None:
    if len(text) > 64:
        return None
    if re.fullmatch(r"\d{9,13}(\.\d+)?", text, re.ASCII):
        return _from_number(float(text))
    if words := _WORDS.fullmatch(text.lower()):
        return _from_words(words)
    return instant_from(text)


def _from_words(words: re.Match[str]) -> datetime | None:
    month = words["month"][:3]
    if month not in _MONTHS:
        return None
    hour = int(words["hour"] or 0)
    if words["half"]:
        hour = hour % 12 + (12 if words["half"] == "pm" else 0)
    date = int(words["year"]), _MONTHS.index(month) + 1, int(words["day"])
    return datetime(*date, hour, int(words["minute"] or 0), tzinfo=UTC)
