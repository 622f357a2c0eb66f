"""A model's changes to a log, made only where they lose nothing: one that does not hold is not made, and its lines stand.

So coverage is complete whatever the model forgot, invented or was talked into.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache

from memory import loops, search
from memory.checks import normalise
from memory.dating import Dated, Resolve, carries
from memory.likeness import Standing
from memory.observation import MAX_TEXT, Dropped, Interval, Kind, Line, Priority, Reflection, Rewritten
from memory.particulars import stands_in

DUPLICATE, SUPERSEDED, CONDENSED = "duplicate", "superseded", "condensed"
_KEPT_DETAIL = 0.6  # share of the numbers and names of its sources that a new line must hold
_SAME = 0.6  # share of a duplicate's words that the line which stays must hold
_SAME_MATTER = 0.2  # share of a superseded line's words that the newer line must hold
_CONDENSED = 0.6  # share of the log's tokens that may go as too small a detail
_ENDURING = frozenset({Kind.ATTRIBUTE, Kind.PREFERENCE, Kind.CORRECTION})
_RANKS = {Priority.LOW: 0, Priority.MEDIUM: 1, Priority.HIGH: 2}


@dataclass(frozen=True, slots=True)
class Change:
    """`sources` become one line of `text`; where that is empty, they go for the reason `why`."""

    sources: tuple[Line, ...]
    text: str
    why: str


def rewritten(lines: Sequence[Line], changes: Sequence[Change], resolve: Resolve) -> tuple[Reflection, Counter[str]]:
    """The log after those of `changes` that hold, and how many do not, by reason."""
    resolve = cache(resolve)  # a line is held against many others
    refused: Counter[str] = Counter()
    merged: list[Rewritten] = []
    for change in changes:
        if change.text:
            fault = _loss(change, resolve)
            refused[fault] += 1
            merged += [] if fault else [_merged(change)]
    gone = {source for line in merged for source in line.sources}
    kept = {line.id: line for line in lines if line.id not in gone}
    dropped = list(_drops(kept, merged, changes, resolve, refused))
    left = [_as_it_was(line) for line in kept.values()]
    return Reflection(tuple(once_each([*left, *merged])), tuple(dropped)), _counted(refused)


def _counted(refused: Counter[str]) -> Counter[str]:
    del refused[""]
    return refused


def _loss(change: Change, resolve: Resolve) -> str:
    """What a merge would lose or invent, or nothing."""
    if len(change.text) > MAX_TEXT or loops.looping(change.text):
        return "over_length"
    at = min(source.observed_at for source in change.sources)
    days = _days_to_name(change.sources, resolve)
    if not all(carries(change.text, each, at, resolve) for each in days):
        return "lost_date"
    known = {detail for source in change.sources for detail in _details(source.text)}
    told = set(search.terms(change.text)) | _numbers(change.text)
    if len(known & told) < _KEPT_DETAIL * len(known):
        return "lost_detail"
    return "invented_number" if _numbers(change.text) - _known_numbers(change.sources, days) else ""


def _days_to_name(sources: Sequence[Line], resolve: Resolve) -> set[Interval]:
    """The days that a merged line must name in words: all that its sources speak of, save those it keeps as its date."""
    spoken = {source.refers_to for source in sources if source.refers_to}
    named = set() if len(spoken) == 1 else set(spoken)
    undated = []
    for source in sources:
        mentioned = {found.interval for found in resolve(source.text, source.observed_at)}
        named |= mentioned
        undated += [] if mentioned or source.refers_to else [source]
    if undated and not _same_time(undated):
        first, last = min(map(_day, undated)), max(map(_day, undated))
        named |= {Interval(first, first), Interval(last, last)}
    return named - (spoken if len(spoken) == 1 else set())


def _same_time(sources: Sequence[Line]) -> bool:
    """What endures is the same within a month, what happened on one day and the next."""
    apart = max(map(_day, sources)) - min(map(_day, sources))
    return apart <= timedelta(days=31 if all(source.kind in _ENDURING for source in sources) else 1)


def _day(line: Line) -> date:
    return line.observed_at.date()


def _details(text: str) -> set[str]:
    """Numbers and capitalised words, folded."""
    return _numbers(text) | {search.folded(word) for word in re.findall(r"\w+", text) if word[0].isupper()}


def _numbers(text: str) -> set[str]:
    return {number.lstrip("0") or "0" for number in re.findall(r"\d+", text)}


def _known_numbers(sources: Sequence[Line], days: set[Interval]) -> set[str]:
    known = {str(len(sources))} | {number for source in sources for number in _numbers(source.text)}
    dates = [_day(source) for source in sources]
    for interval in [*days, *(source.refers_to for source in sources if source.refers_to)]:
        dates += [interval.start, interval.end]
    return known | {number for each in dates for number in _numbers(each.isoformat())}


def _merged(change: Change) -> Rewritten:
    """The age of the oldest source, the weight of the heaviest, the kind of the newest."""
    spoken = [source.refers_to for source in change.sources if source.refers_to]
    span = Interval(min(each.start for each in spoken), max(each.end for each in spoken)) if spoken else None
    return Rewritten(
        text=change.text,
        kind=max(change.sources, key=lambda source: (source.observed_at, source.id)).kind,
        priority=max((source.priority for source in change.sources), key=_RANKS.__getitem__),
        observed_at=min(source.observed_at for source in change.sources),
        sources=tuple(sorted(source.id for source in change.sources)),
        refers_to=span,
    )


def _drops(
    kept: dict[int, Line],
    merged: Sequence[Rewritten],
    changes: Sequence[Change],
    resolve: Resolve,
    refused: Counter[str],
) -> Iterator[Dropped]:
    """Takes out of `kept` what may go, one by one, so that two duplicates of each other do not both go."""
    standing = Standing(kept.values(), merged)
    spare = _CONDENSED * sum(line.tokens for line in kept.values())
    drops = [change for change in changes if not change.text]
    # Duplicates last: what stands for one of them must not go thereafter for another reason.
    for change in sorted(drops, key=lambda change: change.why == DUPLICATE):
        for line in change.sources:
            if line.id not in kept:
                continue
            if not _may_go(line, change.why, standing, spare, resolve):
                refused[f"unfounded_{change.why}"] += 1
                continue
            spare -= line.tokens if change.why == CONDENSED else 0
            standing.remove(line.id)
            del kept[line.id]
            yield Dropped(line.id, change.why)


def _may_go(line: Line, why: str, standing: Standing, spare: float, resolve: Resolve) -> bool:
    if why == DUPLICATE:
        return any(_says_same(line, other, resolve) for other in standing.like(line, _SAME))
    if why == SUPERSEDED:
        return standing.replaced(line.id) or any(
            other.observed_at > line.observed_at for other in standing.like(line, _SAME_MATTER)
        )
    dear = line.priority is Priority.HIGH or (line.kind is Kind.DECISION and line.priority is Priority.MEDIUM)
    return line.tokens <= spare and not dear


def _says_same(line: Line, other: Line | Rewritten, resolve: Resolve) -> bool:
    """Of the same time, and no day, number or name of the one is missing from the other."""
    found = resolve(line.text, line.observed_at)
    if not stands_in(_undated(line.text, found), other.text):
        return False
    named = {mention.interval for mention in found} | ({line.refers_to} - {None})
    missing = [days for days in named if days and days != other.refers_to]
    if not all(carries(other.text, days, other.observed_at, resolve) for days in missing):
        return False
    near = timedelta(days=31 if line.kind in _ENDURING else 1)
    return bool(named) or abs(line.observed_at - other.observed_at) <= near


def _undated(text: str, found: Sequence[Dated]) -> str:
    """`text` without the words of its dates, which another may say in other numbers."""
    for mention in sorted(found, key=lambda mention: -mention.start):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    return text


def _as_it_was(line: Line) -> Rewritten:
    return Rewritten(line.text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)


def once_each(lines: Sequence[Rewritten]) -> list[Rewritten]:
    """By age; lines that came to say the same of the same days become one, with all their sources."""
    ordered = sorted(lines, key=lambda line: (line.observed_at, line.sources))
    once: dict[tuple[str, Interval | None], Rewritten] = {}
    for line in ordered:
        identity = normalise(line.text), line.refers_to
        first = once.get(identity)
        sources = tuple(sorted({*first.sources, *line.sources})) if first else line.sources
        once[identity] = replace(first or line, sources=sources)
    return list(once.values())
