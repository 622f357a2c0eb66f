"""The reflector without a model: a smaller log by rules alone, which goes no further than its threshold needs."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from memory import dates, tokens
from memory.condense_day import GONE, TERSE, VERBATIM, Cut, condensed
from memory.condense_piece import taken_apart
from memory.condense_twins import Settled, settled, survives
from memory.observation import Dropped, Kind, Line, Priority, Reflection, Rewritten

# Where to stop, as a share of the threshold. At the threshold itself the next few lines would make it run again, each
# time over the whole log; a seventh of 32,000 tokens is some two hundred lines, which take a person weeks to say.
# Lower would only lose more: what is gone for want of room, no later run brings back.
COMFORTABLE = 0.85
_BARS = (0.09, 0.18, 0.27, 0.36, 0.45)  # what a piece must newly say for its length
_RANK = {Priority.LOW: 0, Priority.MEDIUM: 1, Priority.HIGH: 2}
_BINDING = frozenset({Kind.DECISION, Kind.CORRECTION})
_DUPLICATE, _SUPERSEDED, _CONDENSED = "duplicate", "superseded", "condensed"


def reflect(lines: Sequence[Line], threshold: int) -> Reflection:
    """All of `lines` condensed: each is the source of a new line, or dropped as duplicate, superseded or condensed.

    A log of less than `threshold` tokens loses only what stands in it twice or was replaced. A larger one is cut until it
    is comfortably below: first prose to notes, then what says little that is new of its day, then whole lines; the low
    before the medium before the high, and of those the oldest first. Only one line that is itself as large stays so.
    """
    log = settled(sorted(lines, key=lambda line: (line.observed_at, line.id)))
    if _size(line.text for line in lines) < threshold:
        kept: Sequence[Rewritten] = [_as_it_was(line) for line in log.standing]
    else:
        kept = _fewest_cuts(log.standing, threshold)
    return Reflection(tuple(kept), tuple(_dropped(log, kept)))


def _fewest_cuts(lines: Sequence[Line], threshold: int) -> Sequence[Rewritten]:
    """The log after as few of the cuts as bring it below the mark, or after all of them."""
    apart = [taken_apart(line) for line in lines]
    cuts = list(_cuts(lines, threshold))
    size = cache(tokens.count)
    few, many = -1, len(cuts)
    kept = condensed(apart, _after(cuts, len(lines)))
    while many - few > 1:
        some = (few + many) // 2
        tried = condensed(apart, _after(cuts[:some], len(lines)))
        if 0 < sum(size(line.text) for line in tried) < COMFORTABLE * threshold:
            many, kept = some, tried
        else:
            few = some
    return kept


def _after(cuts: Iterable[Cut], count: int) -> list[float]:
    bars = [VERBATIM] * count
    for place, bar in cuts:
        bars[place] = bar
    return bars


def _cuts(lines: Sequence[Line], threshold: int) -> Iterator[Cut]:
    """Which line is held to which bar, the next dearer cut after the cheaper; one line stays through all of them."""
    ranked = [[place for place, line in enumerate(lines) if _RANK[line.priority] == rank] for rank in (0, 1, 2)]
    fits = [tokens.count(line.text) < threshold for line in lines]
    last = max(range(len(lines)), key=lambda place: (fits[place], _worth(lines[place])), default=0)
    yield from ((place, TERSE) for places in ranked for place in places)
    yield from ((place, GONE) for place in range(len(lines)) if not fits[place] and place != last)
    for places in ranked:
        going = [place for place in places if fits[place] and place != last]
        yield from ((place, bar) for bar in _BARS for place in going)
        yield from ((place, GONE) for place in sorted(going, key=lambda place: _worth(lines[place])))


def _worth(line: Line) -> tuple[int, bool, bool, float]:
    """Least first: by priority, then what binds nobody, then what has no date, then by age."""
    return _RANK[line.priority], line.kind in _BINDING, line.refers_to is not None, line.observed_at.timestamp()


def _dropped(log: Settled, kept: Sequence[Rewritten]) -> Iterator[Dropped]:
    """Why each line that is not in the new log is gone. A duplicate is one only while its like says all that it said."""
    left = {source: line for line in kept for source in line.sources}
    yield from (Dropped(line.id, _SUPERSEDED) for line in log.replaced)
    for line in log.standing:
        if line.id not in left:
            yield Dropped(line.id, _CONDENSED)
    for line in log.twins:
        like = left.get(log.like(line).id)
        again = like is not None and survives(line, like, dates.resolve)
        yield Dropped(line.id, _DUPLICATE if again else _CONDENSED)


def _as_it_was(line: Line) -> Rewritten:
    return Rewritten(line.text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)


def _size(texts: Iterable[str]) -> int:
    return sum(map(tokens.count, texts))
