"""One view of a text while the detectors read it: what several of them need is found once, when first asked for."""

import re
from functools import cached_property
from itertools import islice

from privacy.budget import Budget
from privacy.cue import Cues, cues, fills
from privacy.known import Known
from privacy.vocabulary import OTHER

_GROUP = re.compile("[0-9]+")
_NONE: frozenset[str] = frozenset()
_ALPHANUMERIC = re.compile(r"[^\W_]|<")  # "<" is where a placeholder stands
_PHRASE_COST = 5  # units to look behind a cue
_MOST_GROUPS_ALONE = 8


class Reading:
    """`text` is folded; `regions` are the ISO codes whose phone numbers count without their country code."""

    def __init__(self, text: str, budget: Budget, regions: tuple[str, ...], known: Known) -> None:
        self.text = text
        self.budget = budget
        self.regions = regions
        self.known = known

    @cached_property
    def few(self) -> bool:
        """Whether the text has so few numbers that it can be an answer of nothing but one."""
        return len([*islice(_GROUP.finditer(self.text), _MOST_GROUPS_ALONE + 1)]) <= _MOST_GROUPS_ALONE

    @cached_property
    def cues(self) -> Cues:
        found = cues(self.text)
        self.budget.spend(len(found.starts) + len(found.phrases) * _PHRASE_COST)
        return found

    @cached_property
    def telling(self) -> bool:
        """Whether anything can be said of a number besides what it is: a cue, or silence around it."""
        return bool(self.cues.starts) or self.few

    def alone(self, start: int, end: int) -> bool:
        """Whether the text is nothing but this value: an answer, or a field of a record."""
        if not self.few:
            return False
        edge = end + 3  # most often something follows at once
        if _ALPHANUMERIC.search(self.text, end, edge) or (start and self.text[start - 1].isalnum()):
            return False
        return _ALPHANUMERIC.search(self.text, edge) is None and _ALPHANUMERIC.search(self.text, 0, start) is None

    def families(self, start: int, end: int) -> frozenset[str]:
        """What cues say this value is: the one before it, and one right behind it unless the first speaks of an order."""
        if not self.cues.starts:
            return _NONE
        before, after = self.cues.before(start), self.cues.after(end)
        if before and before[0] in OTHER:
            return _NONE
        return frozenset(family for family in (before and before[0], after) if family and family not in OTHER)

    def beside(self, start: int, end: int, families: frozenset[str]) -> bool:
        """Whether a cue of one of `families` speaks of this value."""
        return not self.families(start, end).isdisjoint(families)

    def elsewhere(self, start: int) -> bool:
        """Whether the nearest cue says that this is something that belongs to nobody ("order no. 1")."""
        before = self.cues.before(start)
        return before is not None and before[0] in OTHER and "\n" not in before[1] and fills(before[1])
