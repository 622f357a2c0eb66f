"""Ids made of digits: cards, tax and health numbers, and the check digits that tell them from an order number.

Runs of digits and the separators between them are walked through a trie of known shapes, so that a text of nothing
but digits costs what its length is and no more.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache

from privacy.cue import REACH, fills
from privacy.digits import LOOSE, RULES, Loose, Rule
from privacy.reading import Reading
from privacy.span import Span

_SEPARATORS = {" ": " ", "-": "-", ".": ".", "/": "/", "\n": "\n", "\r\n": "\n", " \n": "\n", "  ": " ", " - ": "-"}
_CHECK_COST = 8  # units of one look at check digits
_LONGEST_LOOSE = 6  # groups
_TAIL = re.compile(r"-?[A-Za-z](?![A-Za-z0-9])")
_HASH = re.compile(r"[0-9a-fA-F]{24,}")
_SHAPE = re.compile(r"([0-9]+)([^0-9]?)")


class _Need(Enum):
    NOTHING = auto()
    CUE_OR_SILENCE = auto()
    CUE = auto()


@dataclass(slots=True)
class _Node:
    """After these groups: the rules that end here, their separators and what they need besides; and what may follow."""

    ending: list[tuple[Rule, str, "_Need"]] = field(default_factory=list)
    longer: dict[int, "_Node"] = field(default_factory=dict)


@cache
def _trie() -> _Node:
    root = _Node()
    for rule in RULES:
        needs = ((rule.always, _Need.NOTHING), (rule.alone, _Need.CUE_OR_SILENCE), (rule.beside, _Need.CUE))
        for shapes, need in needs:
            for shape in shapes:
                _plant(root, rule, shape, need)
    return root


def _plant(node: _Node, rule: Rule, shape: str, need: _Need) -> None:
    separators = ""
    for length, separator in _SHAPE.findall(shape):
        node = node.longer.setdefault(int(length), _Node())
        separators += separator
    node.ending.append((rule, separators, need))


def numbers(reading: Reading) -> Iterator[Span]:
    """Ids by their check digits, then by their cue."""
    done = -1
    first_groups = _trie().longer
    for index, (start, end) in enumerate(reading.groups):
        if end - start in first_groups and start >= done:
            found = _longest(reading, index)
            if found is not None:
                done = found.end
                yield found
    for at, family in zip(reading.cues.ends, reading.cues.families, strict=True):
        if family in LOOSE:
            yield from _loose(reading, at, LOOSE[family])


def _longest(reading: Reading, index: int) -> Span | None:
    """The id that begins at this group; of several the one with the most digits."""
    groups, text = reading.groups, reading.text
    start = groups[index][0]
    node = _trie()
    found = None
    digits = separators = ""
    while index < len(groups):
        group_start, end = groups[index]
        following = node.longer.get(end - group_start)
        if following is None:
            break
        node = following
        digits += text[group_start:end]
        for rule, shape, need in node.ending:
            if _parted(shape, separators) and _stands(reading, rule, need, Span(start, end, digits)):
                found = Span(start, end, rule.kind)
                break
        index += 1
        separator = _SEPARATORS.get(text[end : groups[index][0]]) if index < len(groups) and node.longer else None
        if separator is None:
            break
        separators += separator
    return found


def _parted(shape: str, separators: str) -> bool:
    return shape == separators or all(
        wanted == actual or wanted == "~" or (wanted == " " and actual == "\n")
        for wanted, actual in zip(shape, separators, strict=True)
    )


def _stands(reading: Reading, rule: Rule, need: _Need, found: Span) -> bool:
    """Whether neighbours, cue and check digits agree; the cheap questions first. `found.kind` holds the digits."""
    start, end, digits = found
    if not _free(reading, start, end, glued=rule.glued):
        return False
    if not rule.glued and reading.elsewhere(start):
        return False
    if need is not _Need.NOTHING and not reading.beside(start, end, rule.families):
        if need is _Need.CUE or not reading.alone(start, end):
            return False
    reading.budget.spend(_CHECK_COST)
    return rule.valid(digits)


def _free(reading: Reading, start: int, end: int, *, glued: bool) -> bool:
    """Whether the number is no part of something longer."""
    text = reading.text
    before, after = text[start - 1 : start], text[end : end + 1]
    if glued:
        return not _in_hash(text, start, end)
    if after and (after.isalnum() or after == "_" or (after in "-./" and text[end + 1 : end + 2].isdigit())):
        return False
    if not before or not (before.isalnum() or before in "_-./"):
        return True
    if before in "-./":
        return not text[start - 2 : start - 1].isalnum()
    cue = reading.cues.before(start)
    return cue is not None and cue[1] in ("", "_")  # "cpf10433218100": the letters are the cue


def _in_hash(text: str, start: int, end: int) -> bool:
    around = _HASH.search(text, max(0, start - 64), end + 64)
    return around is not None and around.start() < start + 1 and around.end() > end and not around[0].isdigit()


def _loose(reading: Reading, at: int, loose: Loose) -> Iterator[Span]:
    """What a cue that ends at `at` makes of the digits right behind it."""
    index = bisect_left(reading.groups, (at, 0))
    if index == len(reading.groups) or reading.groups[index][0] - at > REACH:
        return
    start = reading.groups[index][0]
    before = reading.cues.before(start)
    if before is None or len(before[1]) != start - at or not fills(before[1]):
        return
    end = _hanging(reading, index, loose)
    if end is not None:
        tail = _TAIL.match(reading.text, end)
        yield Span(start, tail.end() if tail else end, loose.kind)


def _hanging(reading: Reading, index: int, loose: Loose) -> int | None:
    """Where the number ends that begins here: as many groups as the kind has digits for."""
    groups, text = reading.groups, reading.text
    digits, end, last = "", None, -1
    for start, stop in groups[index : index + _LONGEST_LOOSE]:
        if digits and text[last:start] not in _SEPARATORS:
            break
        last = stop
        digits += text[start:stop]
        if len(digits) > loose.most:
            break
        if len(digits) >= loose.fewest:
            end = stop
    return end if end is not None and len(set(digits)) > 1 else None
