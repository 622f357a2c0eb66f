"""A stretch of a text that is personal, and of what kind it is."""

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

_START = itemgetter(0)


class Span(NamedTuple):  # a tuple, because a dense text makes thousands and JSON takes it as it is
    """`[start, end)` in characters, and the kind (one of `privacy.kind.KINDS`)."""

    start: int
    end: int
    kind: str


def united(spans: Iterable[Span]) -> list[Span]:
    """In order, none overlapping: what overlaps becomes one span, named by its longest part, of equals by the first given."""
    merged: list[Span] = []
    longest = 0
    for span in sorted(spans, key=_START):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            kind = span.kind if span.end - span.start > longest else last.kind
            longest = max(longest, span.end - span.start)
            merged[-1] = Span(last.start, max(last.end, span.end), kind)
        else:
            merged.append(span)
            longest = span.end - span.start
    return merged
