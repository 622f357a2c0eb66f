"""Durations as people write them: 90s, 30m, 12h, 7d."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_FORM = re.compile(r"(\d{1,9})\s*([smhd])")
_LONGEST = timedelta(seconds=999_999_999)  # written in seconds, as processes hand it on, it must be a duration again
_UNIT = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse(value: object) -> timedelta:
    """A duration; ValueError says which forms are known."""
    if isinstance(value, timedelta):
        return value
    found = _FORM.fullmatch(str(value).strip().lower())
    if not found:
        raise ValueError("takes a whole number and a unit: 90s, 30m, 12h or 7d")
    try:
        span = timedelta(**{_UNIT[found[2]]: int(found[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise ValueError("takes 11574d at most")
    return span


def at_least_a_second(span: timedelta) -> timedelta:
    """The span; ValueError when it is so short that whoever went by it would never rest, or never wait."""
    if span < timedelta(seconds=1):
        raise ValueError("takes one second or more")
    return span


Duration = Annotated[timedelta, BeforeValidator(parse)]
