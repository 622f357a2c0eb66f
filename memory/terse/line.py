"""Statements joined into lines of the log: what one speaker says of one matter and one time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from memory.observation import MAX_TEXT, Interval
from memory.terse.statement import Statement
from memory.turn import Turn

_TURNS = 5  # of one speaker, one after the other, that a line may join
_LENGTH = 330  # characters after which a line takes nothing more


@dataclass(slots=True)
class Joined:
    """A line in the making."""

    label: str
    observed_at: datetime
    place: int
    days: Interval | None = None
    text: str = ""
    sources: list[str] = field(default_factory=list)
    evidence: list[int] = field(default_factory=list)

    def takes(self, statement: Statement, turn: Turn) -> bool:
        """One line has one time, and stays short enough to be read in one go."""
        if statement.days and self.days and statement.days != self.days:
            return False
        turns = len({*self.evidence, turn.id})
        return turns <= _TURNS and len(self.text) < _LENGTH and len(self.text) + len(statement.text) < MAX_TEXT - 2

    def add(self, statement: Statement, turn: Turn) -> None:
        mark = "" if not self.text else ", " if turn.id == self.evidence[-1] else "; "
        self.text += mark + self._named(statement)
        self.days = self.days or statement.days
        self.sources.append(statement.source)
        if turn.id not in self.evidence:
            self.evidence.append(turn.id)

    def _named(self, statement: Statement) -> str:
        """The statement with whom "he" or "she" means, unless this line has said it."""
        if statement.about is None or statement.about in self.text:
            return statement.text
        return (
            statement.about + statement.text[statement.text.index(" ") :] if " " in statement.text else statement.text
        )


def joined(said: Iterable[tuple[Turn, str, Statement]], *, over_turns: bool) -> Iterator[Joined]:
    """Lines in the order in which they begin, from (turn, label, statement); each speaker's stand apart."""
    open_lines: dict[str, Joined] = {}
    for place, (turn, label, statement) in enumerate(said):
        line = open_lines.get(label)
        goes_on = over_turns or (statement.continues and line is not None and turn.id == line.evidence[-1])
        if line is None or not goes_on or not line.takes(statement, turn):
            if line is not None:
                yield line
            line = open_lines[label] = Joined(label, turn.said_at, place)
        line.add(statement, turn)
    yield from open_lines.values()
