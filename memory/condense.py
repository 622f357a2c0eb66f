"""The reflector without a model: a smaller log by rules alone."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby

from memory import tokens
from memory.condense_piece import Piece, Pieces, taken_apart
from memory.observation import MAX_TEXT, Dropped, Interval, Kind, Line, Priority, Reflection, Rewritten
from memory.stems import plain, stem
from memory.terse.known import Said
from memory.wordlist import listed

_BARS = (
    0.166,
    0.2,
    0.24,
    0.29,
    0.34,
    0.4,
    0.46,
)  # what a piece must newly say for its length; raised until the log fits
_FOR_AGE = (0.9, 1.1)  # shares of that for the newest day and for the oldest
_FOR_PRIORITY = {Priority.HIGH: 0.5, Priority.MEDIUM: 1.0, Priority.LOW: 1.5}
_RANK = {Priority.LOW: 0, Priority.MEDIUM: 1, Priority.HIGH: 2}
_BINDING = frozenset({Kind.DECISION, Kind.CORRECTION})
_SAME_PERIOD = timedelta(days=31)
_DUPLICATE, _SUPERSEDED, _CONDENSED = "duplicate", "superseded", "condensed"
# That people talked, praised, asked, agreed is how a fact came up, not a fact.
_OF_THE_TALK = frozenset(
    stem(word)
    for word in listed(
        """
        conversation chat talked talking discuss discussed discussing mention mentioned share shared express expressed explain explained say
        said tell told ask asked agree agreed praise praised compliment complimented congratulate congratulated commend commended thank
        thanked gratitude appreciate appreciated appreciation wish wished encourage encouraged emphasize emphasized reveal revealed
        believe believes feel felt find found begin began end ended
        """
    )
)


def reflect(lines: Sequence[Line], threshold: int) -> Reflection:
    """All of `lines` condensed: each is the source of a new line, or dropped as duplicate, superseded or condensed.

    The new log has less than `threshold` tokens, unless one line alone has as many. What says nothing new of its day
    goes, of old days more than of new ones; where that is not enough, whole lines go, the least and oldest first.
    """
    standing, dropped = _settled(sorted(lines, key=lambda line: (line.observed_at, line.id)))
    days = [
        list(day) for _, day in groupby(map(taken_apart, standing), key=lambda apart: apart.line.observed_at.date())
    ]
    reflection = Reflection(())
    for bar in _BARS:
        reflection = _condensed(days, bar)
        if _size(reflection.lines) < threshold:
            break
    fitting, over = _fitting(reflection.lines, threshold)
    return Reflection(tuple(fitting), (*dropped, *reflection.dropped, *over))


def _settled(lines: Sequence[Line]) -> tuple[list[Line], list[Dropped]]:
    """Without what a later line replaces, and without exact repetitions of the same time; of two the weightier stays."""
    replaced = {line.supersedes for line in lines if line.supersedes is not None}
    dropped = [Dropped(line.id, _SUPERSEDED) for line in lines if line.id in replaced]
    standing: dict[int, Line] = {}
    known: dict[tuple[str, Interval | None], Line] = {}
    for line in lines:
        if line.id in replaced:
            continue
        identity = plain(line.text), line.refers_to
        first = known.get(identity)
        stays = line
        if first is not None and (line.refers_to or line.observed_at - first.observed_at <= _SAME_PERIOD):
            stays, lesser = (line, first) if _RANK[line.priority] > _RANK[first.priority] else (first, line)
            standing.pop(lesser.id, None)
            dropped.append(Dropped(lesser.id, _DUPLICATE))
        standing[stays.id] = known[identity] = stays
    return list(standing.values()), dropped


def _condensed(days: Sequence[Sequence[Pieces]], bar: float) -> Reflection:
    """Day by day, the lines in their order, as far as they say what no line of that day has said before."""
    lines: list[Rewritten] = []
    dropped: list[Dropped] = []
    dated: dict[Interval, Said] = defaultdict(Said)
    newest, oldest = _FOR_AGE
    for place, day in enumerate(days):
        age = (len(days) - 1 - place) / max(1, len(days) - 1)
        today = _Day(day[0].line.observed_at.date(), bar * (newest + (oldest - newest) * age), dated)
        for apart in day:
            kept = today.keep(apart)
            if isinstance(kept, Rewritten):
                lines.append(kept)
            else:
                dropped.append(kept)
    return Reflection(tuple(lines), tuple(dropped))


@dataclass(slots=True)
class _Day:
    """What the kept lines of one day have said so far."""

    on: date
    bar: float
    dated: dict[Interval, Said]  # of all days: what lines say of a time, they say whenever it was observed
    texts: Said = field(default_factory=Said)
    words: set[str] = field(default_factory=set)
    days: set[Interval] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.days.add(Interval(self.on, self.on))

    def keep(self, apart: Pieces) -> Rewritten | Dropped:
        line = apart.line
        of_the_same_time = self.dated[line.refers_to] if line.refers_to else self.texts
        if of_the_same_time.says(line.text):
            return Dropped(line.id, _DUPLICATE)
        kept = [piece for piece in apart.pieces if self._is_news(piece, line)]
        if not kept:
            known = all(piece.about <= self.words for piece in apart.pieces)
            return Dropped(line.id, _DUPLICATE if known else _CONDENSED)
        of_the_same_time.add(line.text)
        if line.refers_to:
            self.days.add(line.refers_to)
        return _rewritten(apart, kept)

    def _is_news(self, piece: Piece, line: Line) -> bool:
        fresh = piece.about - self.words
        days = piece.days | ({line.refers_to} if line.refers_to else frozenset())
        news = len(fresh - _OF_THE_TALK) + 0.5 * any(stem(name.lower()) in fresh for name in piece.names)
        news += 0.7 * any(word[0].isdigit() for word in fresh)
        enough = news / (piece.length + 2) >= self.bar * _FOR_PRIORITY[line.priority]
        if not (enough or days - self.days or (line.kind in _BINDING and fresh)):
            return False
        self.words |= piece.about
        self.days |= piece.days
        return True


def _rewritten(apart: Pieces, kept: Sequence[Piece]) -> Rewritten:
    line = apart.line
    text = line.text if apart.terse and len(kept) == len(apart.pieces) else _text(apart, kept)
    return Rewritten(text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)


def _text(apart: Pieces, kept: Sequence[Piece]) -> str:
    return (apart.label + ("; " if apart.terse else ", ").join(piece.text for piece in kept))[:MAX_TEXT]


def _fitting(lines: Sequence[Rewritten], threshold: int) -> tuple[list[Rewritten], list[Dropped]]:
    """As many of `lines` as fit, in their order, and the others as dropped."""
    left = _size(lines)
    going: set[tuple[int, ...]] = set()
    for line in sorted(lines, key=_worth)[:-1]:
        if left < threshold:
            break
        left -= tokens.count(line.text)
        going.add(line.sources)
    dropped = [Dropped(source, _CONDENSED) for line in lines if line.sources in going for source in line.sources]
    return [line for line in lines if line.sources not in going], dropped


def _worth(line: Rewritten) -> tuple[int, bool, bool, float]:
    """Least first: by priority, then what binds nobody, then what has no date, then by age."""
    return _RANK[line.priority], line.kind in _BINDING, line.refers_to is not None, line.observed_at.timestamp()


def _size(lines: Iterable[Rewritten]) -> int:
    return sum(tokens.count(line.text) for line in lines)
