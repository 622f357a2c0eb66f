"""A log as text for a prompt: the same bytes for the same lines, and no text that can pass for a mark of ours."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from itertools import groupby

from memory import dates, tokens
from memory.budget import ranked
from memory.dating import carries
from memory.fence import one_line
from memory.observation import Interval, Line

OPENING, CLOSING = "<observations>", "</observations>"
# Every line of text begins with "- ", so none is a heading; and none can spell a marker.
_MARKER = re.compile(r"[<＜﹤‹](?=\W{0,9}observations)", re.IGNORECASE)


def block(lines: Sequence[Line], budget: int | None = None) -> str:
    """The log between fixed markers, grouped by day, oldest first; of no line, or where none fits, nothing at all.

    A day is that of the offset in which the turn was spoken. Within `budget` tokens high priority and recent lines
    stay; the text, markers and all, is never more than that.
    """
    replaced = {line.supersedes for line in lines if line.supersedes is not None}
    rows = {line.id: _row(line, replaced) for line in lines}
    if budget is None:
        return _text(lines, rows)
    chosen = _fitting(lines, rows, budget, replaced)
    while chosen and tokens.count(_text(chosen, rows)) > budget:
        chosen.pop()
    return _text(chosen, rows)


def _fitting(lines: Sequence[Line], rows: Mapping[int, str], budget: int, replaced: Collection[int]) -> list[Line]:
    """The lines that fit, the one that should stay longest in front. Tokens add up, since rows end in a line break."""
    costs = {key: tokens.count(f"{row}\n") for key, row in rows.items()}
    left = budget - tokens.count(f"{OPENING}\n{CLOSING}")
    days: set[str] = set()
    chosen: list[Line] = []
    for line in ranked(lines, left, lambda line: costs[line.id], replaced):
        day = _day(line)
        cost = costs[line.id] + (0 if day in days else tokens.count(f"{day}\n"))
        if cost <= left:
            left -= cost
            days.add(day)
            chosen.append(line)
    return chosen


def _text(lines: Sequence[Line], rows: Mapping[int, str]) -> str:
    if not lines:
        return ""
    ordered = sorted(lines, key=lambda line: (_day(line), line.observed_at, line.id))
    said = [OPENING]
    for day, of_day in groupby(ordered, key=_day):
        said += [day, *(rows[line.id] for line in of_day)]
    return "\n".join([*said, CLOSING])


def _day(line: Line) -> str:
    return line.observed_at.date().isoformat()


def _row(line: Line, replaced: Collection[int]) -> str:
    text = _MARKER.sub("(", one_line(line.text, " "))
    return f"- {text}{_about(line)}{' (since replaced)' if line.id in replaced else ''}"


def _about(line: Line) -> str:
    """The days that a line speaks about, where neither its text nor its day's heading tells them."""
    days, observed = line.refers_to, line.observed_at.date()
    if days is None or days == Interval(observed, observed):
        return ""
    # "Last week" resolves as well, but a reader has to reckon; a year in the text is what tells the two apart.
    told = str(days.end.year) in line.text and carries(line.text, days, line.observed_at, dates.resolve)
    return "" if told else f" ({_span(days)})"


def _span(days: Interval) -> str:
    """A day, a month, a year, or a stretch from day to day."""
    start, end = days.start.isoformat(), days.end.isoformat()
    if start == end:
        return start
    month = start[:7] == end[:7] and start.endswith("-01") and (days.end + timedelta(days=1)).day == 1
    if month:
        return start[:7]
    return start[:4] if start[4:] == "-01-01" and end == f"{start[:4]}-12-31" else f"{start} to {end}"
