"""What comes along when not everything fits."""

from collections.abc import Callable, Collection, Sequence

from memory.observation import Line, Priority

_RECENT = 4  # a quarter of a budget is for the newest lines, whatever their priority
_RANKS = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}


def split(total: int, wanted: Sequence[int], floors: Sequence[int] = ()) -> list[int]:
    """`total` tokens over parts in their order: each part's floor first, then what each wants, the first part first.

    No part gets more than it wants; together they get no more than `total`.
    """
    left = max(0, total)
    given = [0] * len(wanted)
    for asked in (list(floors), list(wanted)):
        for at, size in enumerate(asked[: len(wanted)]):
            more = max(0, min(left, min(size, wanted[at]) - given[at]))
            given[at] += more
            left -= more
    return given


def ranked(lines: Sequence[Line], budget: int, cost: Callable[[Line], int], replaced: Collection[int]) -> list[Line]:
    """All of `lines`, the one that should come along first in front.

    First the newest that together cost up to a quarter of `budget`; then high priority, then medium, then low, each
    newest first; last the ids in `replaced`, which newer lines correct.
    """
    newest = sorted(lines, key=lambda line: (line.observed_at, line.id), reverse=True)
    recent = budget // _RECENT
    first: list[Line] = []
    for line in newest:
        recent -= cost(line)
        if recent < 0:
            break
        first += [] if line.id in replaced else [line]
    rest = sorted(newest, key=lambda line: (line.id in replaced, _RANKS[line.priority]))
    return list(dict.fromkeys([*first, *rest]))
