"""What the log holds: one dated line per fact."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

MAX_TEXT = 1_000  # characters of one observation


class Kind(StrEnum):
    ATTRIBUTE = "attribute"
    EVENT = "event"
    DECISION = "decision"
    PREFERENCE = "preference"
    PLAN = "plan"
    CORRECTION = "correction"
    TASK = "task"


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Interval:
    """The days that a text speaks about, both ends included; one day has `start == end`."""

    start: date
    end: date


@dataclass(frozen=True, slots=True)
class Draft:
    """An observation on its way to the log. `evidence` are turn ids (at least one), `supersedes` an observation's id."""

    text: str
    kind: Kind
    priority: Priority
    observed_at: datetime
    evidence: tuple[int, ...]
    refers_to: Interval | None = None
    supersedes: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """An observation as the log holds it. `tokens` counts its text by o200k_base."""

    id: int
    text: str
    kind: Kind
    priority: Priority
    observed_at: datetime
    tokens: int
    evidence: tuple[int, ...] = ()
    refers_to: Interval | None = None
    supersedes: int | None = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A line of a reflection. `sources` are the ids of the lines that it came from, at least one.

    A line that stands as it was has one source, and that line's text, kind, priority and dates.
    """

    text: str
    kind: Kind
    priority: Priority
    observed_at: datetime
    sources: tuple[int, ...]
    refers_to: Interval | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line that a reflection leaves out, and why: duplicate, superseded, condensed."""

    id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Reflection:
    """A whole new log: every old line is a source of some line or dropped with a reason."""

    lines: tuple[Rewritten, ...]
    dropped: tuple[Dropped, ...] = ()
