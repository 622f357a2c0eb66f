"""The built-in reflector: a smaller log without a model."""

from collections.abc import Sequence

from memory.checks import normalise
from memory.observation import Dropped, Line, Reflection, Rewritten


def reflect(lines: Sequence[Line], threshold: int) -> Reflection:
    """Exact duplicates go first; then the oldest, least important lines, until the log is under `threshold` tokens."""
    seen: set[str] = set()
    dropped: list[Dropped] = []
    kept: list[Line] = []
    for line in lines:
        key = normalise(line.text)
        if key in seen:
            dropped.append(Dropped(line.id, "duplicate"))
        else:
            seen.add(key)
            kept.append(line)
    return Reflection(tuple(_as_it_was(line) for line in kept), tuple(dropped))


def _as_it_was(line: Line) -> Rewritten:
    return Rewritten(line.text, line.kind, line.priority, line.observed_at, (line.id,), line.refers_to)
