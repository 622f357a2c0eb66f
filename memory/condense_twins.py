"""Which lines of a log another line makes needless: it says all of the same, of the same time, or takes their place."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from memory import dates
from memory.checks import normalise
from memory.dating import Resolve, carries
from memory.observation import Interval, Kind, Line, Priority, Rewritten
from memory.particulars import stands_in
from memory.terse.known import Said

_RANK = {Priority.LOW: 0, Priority.MEDIUM: 1, Priority.HIGH: 2}
_ENDURING = frozenset({Kind.ATTRIBUTE, Kind.PREFERENCE, Kind.CORRECTION})
_STILL = timedelta(days=31)  # what endures is the same fact within it
_SAME_DAY = timedelta(days=1)  # what happens is the same event within it


@dataclass(slots=True)
class Settled:
    """The lines that stand, those that a later one replaces, and those of which another that stands is the like."""

    standing: list[Line] = field(default_factory=list)
    replaced: list[Line] = field(default_factory=list)
    twins: list[Line] = field(default_factory=list)
    likes: dict[int, Line] = field(default_factory=dict)

    def like(self, line: Line) -> Line:
        """The line that stands for this one."""
        while line.id in self.likes:
            line = self.likes[line.id]
        return line


def settled(lines: Sequence[Line]) -> Settled:
    """`lines`, oldest first, each in its place. Of two that say the same the older stays, unless the other weighs more."""
    log = Settled()
    place = {line.id: at for at, line in enumerate(lines)}
    # Only what is later replaces: two lines that name each other are not both wrong.
    replaced = {line.supersedes for at, line in enumerate(lines) if place.get(line.supersedes or line.id, at) < at}
    said, known, standing = Said(), list[Line](), dict[int, Line]()
    for line in lines:
        if line.id in replaced:
            log.replaced.append(line)
            continue
        alike = (log.like(known[at]) for at in said.places(line.text))
        like = next((one for one in alike if _same(line, one)), None)
        lesser = line if like is None or _RANK[like.priority] >= _RANK[line.priority] else like
        if like is not None:
            standing.pop(lesser.id, None)
            log.twins.append(lesser)
            log.likes[lesser.id] = like if lesser is line else line
        if like is None or lesser is like:
            standing[line.id] = line
            said.add(line.text)
            known.append(line)
    log.standing = list(standing.values())
    return log


def survives(line: Line, like: Line | Rewritten, resolve: Resolve) -> bool:
    """Whether all particulars of `line`, its days among them, still stand in `like`."""
    named = {found.interval for found in resolve(line.text, line.observed_at)} | ({line.refers_to} - {None})
    missing = [each for each in named if each and each != like.refers_to]
    return stands_in(line.text, like.text) and all(
        carries(like.text, each, like.observed_at, resolve) for each in missing
    )


def _same(line: Line, known: Line) -> bool:
    """Of the same time; and the weightier of the two goes only where the other says it word for word."""
    if line.refers_to != known.refers_to or not _days(line) <= _days(known):
        return False
    word_for_word = normalise(line.text) == normalise(known.text)
    if _RANK[line.priority] > _RANK[known.priority] and not word_for_word:
        return False
    near = _STILL if word_for_word or line.kind in _ENDURING else _SAME_DAY
    return line.refers_to is not None or line.observed_at - known.observed_at <= near


def _days(line: Line) -> frozenset[Interval]:
    return frozenset(mention.interval for mention in dates.resolve(line.text, line.observed_at))
