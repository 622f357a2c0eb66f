"""Durations as people write them: 90s, 30m, 12h, 7d."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_FORM = re.compile(r"(\d{1,9})\s*([smhd])")
_UNIT = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse(value: object) -> timedelta:
    """A duration; ValueError says which forms are known."""
    if isinstance(value, timedelta):
        return value
    found = _FORM.fullmatch(str(value).strip().lower())
    if not found:
        raise ValueError("takes a whole number and a unit: 90s, 30m, 12h or 7d")
    try:
        return timedelta(**{_UNIT[found[2]]: int(found[1])})
    except OverflowError:
        raise ValueError("is longer than a calendar holds") from None


Duration = Annotated[timedelta, BeforeValidator(parse)]
