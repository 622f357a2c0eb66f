"""When something was said, as RFC 3339 writes it. A leap second is a second like others."""

import calendar
import re
from datetime import UTC, datetime

_LEAP_SECOND = re.compile(r"(.{10}[T ]\d\d:?\d\d:?)60(?:\.\d+)?(Z|[+-]\d\d:?\d\d)")


def instant_from(text: str) -> datetime:
    """The time; without an offset it is not aware. A leap second is the last microsecond of its minute, so that it keeps
    its day. Raises ValueError for what is no time, and for a sixtieth second that UTC does not have."""
    text = text.upper()
    leap = _LEAP_SECOND.fullmatch(text)
    if leap is None:
        return datetime.fromisoformat(text)
    instant = datetime.fromisoformat(f"{leap[1]}59.999999{leap[2]}")
    if not _ends_a_month(instant):
        raise ValueError("leap seconds end the last minute of a month")
    return instant


def _ends_a_month(instant: datetime) -> bool:
    there = instant.astimezone(UTC)
    return (there.hour, there.minute, there.day) == (23, 59, calendar.monthrange(there.year, there.month)[1])
