"""What a job may come to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """The job completed its row in its own transaction."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There was nothing to write: the worker completes the row, together with others in one commit."""


@dataclass(frozen=True, slots=True)
class Later:
    """Try again after `seconds`; None: as the back-off says. `error` is a code. Not counted: no attempt is used up."""

    seconds: float | None
    error: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Hopeless:
    """It would fail the same way every time: the row is dead. `error` is a code."""

    error: str


Verdict = Done | Nothing | Later | Hopeless

MEMORY_OFF = Later(900.0, "memory_off", counts=False)  # work about memory waits while it is off; nothing is deleted
