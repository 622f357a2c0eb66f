"""The lines of a log as far as they say what no other line of their day has said before."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from memory.condense_piece import Piece, Pieces
from memory.observation import MAX_TEXT, Interval, Kind, Line, Rewritten
from memory.stems import stem
from memory.wordlist import listed

# The bars to which a line is held: untouched, as a note that lacks nothing, and out altogether.
VERBATIM, TERSE, GONE = -1.0, 0.0, float("inf")
Cut = tuple[int, float]  # the place of a line in its log, and the bar to which it is held
_BINDING = frozenset({Kind.DECISION, Kind.CORRECTION})
_NAME, _NUMBER = 1.0, 1.5  # what a new one weighs beyond its word: lines that differ by it only are different facts
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


def condensed(log: Sequence[Pieces], bars: Sequence[float]) -> list[Rewritten]:
    """What is left of the lines, each held to its own bar."""
    held = zip(log, bars, strict=True)
    days = groupby(held, key=lambda one: one[0].line.observed_at.date())
    return [left for on, day in days for left in _Day(on).condense(list(day))]


@dataclass(slots=True)
class _Day:
    """What the kept lines of one day say, and how often."""

    on: date
    words: Counter[str] = field(default_factory=Counter)
    days: Counter[Interval] = field(default_factory=Counter)

    def condense(self, held: Sequence[tuple[Pieces, float]]) -> Iterator[Rewritten]:
        """What an early line says, a later one may say with more besides: so each is heard first, and weighed once more."""
        self.days[Interval(self.on, self.on)] += 1
        heard = [(apart, bar, self._heard(apart, bar)) for apart, bar in held]
        for apart, bar, pieces in heard:
            text = _text(apart, bar, pieces if bar <= TERSE else self._weighed(apart.line, pieces, bar))
            if text:
                line = apart.line
                yield Rewritten(text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)

    def _heard(self, apart: Pieces, bar: float) -> list[Piece]:
        kept = []
        for piece in apart.pieces if bar < GONE else ():
            if bar <= TERSE or self._is_news(piece, apart.line, bar, besides=0):
                kept.append(piece)
                self._count(piece, apart.line, 1)
        return kept

    def _weighed(self, line: Line, pieces: Sequence[Piece], bar: float) -> list[Piece]:
        kept = []
        for piece in pieces:
            if self._is_news(piece, line, bar, besides=1):
                kept.append(piece)
            else:
                self._count(piece, line, -1)
        return kept

    def _is_news(self, piece: Piece, line: Line, bar: float, besides: int) -> bool:
        """Whether the piece says enough, for its length, that stands nowhere else; `besides`: how often itself counts."""
        fresh = {word for word in piece.about if self.words[word] <= besides}
        news = len(fresh - _OF_THE_TALK) + _NAME * any(stem(name.lower()) in fresh for name in piece.names)
        news += _NUMBER * any(word[0].isdigit() for word in fresh)
        if news / (piece.length + 1) >= bar or (line.kind in _BINDING and fresh):
            return True
        return any(self.days[days] <= besides for days in _days_of(piece, line))

    def _count(self, piece: Piece, line: Line, times: int) -> None:
        for word in piece.about:
            self.words[word] += times
        for days in _days_of(piece, line):
            self.days[days] += times


def _days_of(piece: Piece, line: Line) -> frozenset[Interval]:
    return piece.days | {line.refers_to} if line.refers_to else piece.days


def _text(apart: Pieces, bar: float, kept: Sequence[Piece]) -> str:
    """The kept pieces under the label of their line; nothing where none is. A note of nothing leaves the line as it was."""
    whole = apart.terse and kept and len(kept) == len(apart.pieces)
    if bar == VERBATIM or whole or (bar == TERSE and not kept):
        return apart.line.text if bar < GONE else ""
    text = ("; " if apart.terse else ", ").join(piece.text for piece in kept)
    return (apart.label + text)[:MAX_TEXT] if kept else ""
