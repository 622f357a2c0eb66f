"""Ids made of digits: cards, tax and health numbers, and the check digits that tell them from an order number.

Runs of digits and the separators between them are walked through a trie of known shapes, so that a text of nothing
but digits costs what its length is and no more.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from privacy.check import card, cpf
from privacy.cue import REACH, fills
from privacy.digits import LOOSE, RULES, Loose, Rule
from privacy.reading import Reading
from privacy.span import Span

_SEPARATORS = {
    " ": " ",
    "-": "-",
    ".": ".",
    "/": "/",
    "\n": "\n",
    "\r\n": "\n",
    " \n": "\n",
    "  ": " ",
    " - ": "-",
    ",": ",",
    ", ": ",",
}
_ALIKE = {"~": " -./\n", "*": " -./\n,", " ": " \n"}  # what a separator of a shape may be in a text
_NO_SEPARATORS = {ord(sign): None for sign in " -./,\n\r"}
_CHECK_COST = 8  # units of one look at check digits
_CUE_COST = 3
_SINGLY = re.compile(r"(?<![0-9])[0-9](?:([ ,.\-]|, )[0-9](?![0-9]))(?:\1[0-9](?![0-9]))*+")
_SINGLE_KINDS = {
    11: ("CPF", cpf),
    **dict.fromkeys(range(13, 20), ("CREDIT_CARD", card)),
}  # by the digits that there are
_TAIL = re.compile(r"-?[A-Za-z](?![A-Za-z0-9])")
_HASH = re.compile(r"[0-9a-fA-F]{24,}")
_ROW = re.compile(r"[0-9] \||\| [0-9]")
_COMMA_BEFORE, _COMMA_AFTER = re.compile(r"[0-9], ?\Z"), re.compile(r", ?[0-9]")
_SHAPE = re.compile(r"([0-9]+)([^0-9]?)")


@dataclass(slots=True)
class _Node:
    """After these groups: the rules that end here with their separators, and what may follow.

    `sure` ones need nothing besides, `lone` ones a cue or silence around them, `told` ones a cue.
    """

    sure: list[tuple[Rule, str]] = field(default_factory=list)
    lone: list[tuple[Rule, str]] = field(default_factory=list)
    told: list[tuple[Rule, str]] = field(default_factory=list)
    longer: dict[int, "_Node"] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)  # by these separators before its own group
    ends: bool = False
    by_separators: dict[str, tuple[Rule, ...]] = field(default_factory=dict)

    def surely(self, separators: str) -> tuple[Rule, ...]:
        rules = self.by_separators.get(separators)
        if rules is None:
            rules = tuple(rule for rule, shape in self.sure if _parted(shape, separators))
            self.by_separators[separators] = rules
        return rules


@cache
def _trie() -> _Node:
    root = _Node()
    for rule in RULES:
        for shape in rule.always:
            node, separators = _path(root, shape)
            node.sure.append((rule, separators))
        for shape in rule.alone:
            node, separators = _path(root, shape)
            node.lone.append((rule, separators))
        for shape in rule.beside:
            node, separators = _path(root, shape)
            node.told.append((rule, separators))
    return root


def _path(node: _Node, shape: str) -> tuple[_Node, str]:
    """The node of a shape's lengths, and its separators."""
    separators = ""
    for length, separator in _SHAPE.findall(shape):
        node = node.longer.setdefault(int(length), _Node())
        if separators:
            node.reached.update(_ALIKE.get(separators[-1], separators[-1]))
        separators += separator
    node.ends = True
    return node, separators


def numbers(reading: Reading) -> Iterator[Span]:
    """Ids by their check digits, then by their cue."""
    done = -1
    firsts, separators = _trie().longer, [*map(_SEPARATORS.get, reading.gaps), None]
    for index, (start, end) in enumerate(reading.groups):
        node = firsts.get(end - start)
        if node is None or start < done or not (node.ends or _goes_on(reading, node, index, separators[index])):
            continue
        found = _longest(reading, node, index, separators)
        if found is not None:
            done = found.end
            yield found
    for at, family in zip(reading.cues.ends, reading.cues.families, strict=True):
        if family in LOOSE:
            yield from _loose(reading, at, LOOSE[family])
    yield from _one_by_one(reading)


def _one_by_one(reading: Reading) -> Iterator[Span]:
    """Ids that somebody wrote digit by digit; a longer or a shorter row of digits is a row of digits."""
    for row in _SINGLY.finditer(reading.text):
        digits = row[0].translate(_NO_SEPARATORS)
        kind, valid = _SINGLE_KINDS.get(len(digits), ("", None))
        if valid is not None:
            reading.budget.spend(_CHECK_COST)
            if valid(digits):
                yield Span(*row.span(), kind)


def _goes_on(reading: Reading, node: _Node, index: int, separator: str | None) -> bool:
    """Whether a shape has the next group behind this one; most rows of numbers end here."""
    if separator is None:
        return False
    start, end = reading.groups[index + 1]
    following = node.longer.get(end - start)
    return following is not None and separator in following.reached


def _longest(reading: Reading, node: _Node | None, index: int, parted: list[str | None]) -> Span | None:
    """The id that begins at this group; of several the one with the most digits."""
    groups, telling = reading.groups, reading.telling
    start, end = groups[index]
    found = None
    separators = ""
    while node is not None:
        asked = node.ends and (telling or node.surely(separators))
        if asked and (kind := _kind(reading, node, separators, start, end)):
            found = Span(start, end, kind)
        separator = parted[index]
        if separator is None or not node.longer:
            break
        separators += separator
        index += 1
        following, end = groups[index]
        node = node.longer.get(end - following)
        if node is None or separator not in node.reached:
            break
    return found


def _kind(reading: Reading, node: _Node, separators: str, start: int, end: int) -> str | None:
    """What stands there by the rules that end at `node`; the cheap questions come first."""
    rules = node.surely(separators)
    if reading.telling and (node.lone or node.told):
        rules = rules + _spoken_of(reading, node, separators, start, end)
    if not rules or ("," in separators and _in_row(reading.text, start, end)):
        return None
    free = _free(reading, start, end, separators) and not reading.elsewhere(start)
    digits = reading.text[start:end].translate(_NO_SEPARATORS)
    for rule in rules:
        if free or (rule.glued and not _in_hash(reading.text, start, end)):
            reading.budget.spend(_CHECK_COST)
            if rule.valid(digits):
                return rule.kind
    return None


def _spoken_of(reading: Reading, node: _Node, separators: str, start: int, end: int) -> tuple[Rule, ...]:
    """The rules that a cue speaks for, or silence around the number."""
    families = reading.families(start, end)
    if families:
        return tuple(
            rule
            for rule, shape in node.lone + node.told
            if not families.isdisjoint(rule.families) and _parted(shape, separators)
        )
    if node.lone and reading.alone(start, end):
        return tuple(rule for rule, shape in node.lone if _parted(shape, separators))
    return ()


def _parted(shape: str, separators: str) -> bool:
    return all(actual in _ALIKE.get(wanted, wanted) for wanted, actual in zip(shape, separators, strict=True))


def _free(reading: Reading, start: int, end: int, separators: str) -> bool:
    """Whether the number is no part of something longer: of a word, of a version, or, parted by spaces, of a row."""
    text = reading.text
    before, after = text[start - 1 : start], text[end : end + 1]
    if separators.isspace() and _ROW.search(text[max(0, start - 2) : start] + "|" + text[end : end + 2]):
        return bool(reading.families(start, end))
    if after and (
        after.isalnum() or (after == "_" and not separators) or (after in "-./" and text[end + 1 : end + 2].isdigit())
    ):
        return False
    if not before or not (before.isalnum() or before in "_-./") or (before == "_" and separators):
        return True
    if before in "-./":
        return not text[start - 2 : start - 1].isalnum()
    cue = reading.cues.before(start)
    return cue is not None and cue[1] in ("", "_")  # "cpf10433218100": the letters are the cue


def _in_row(text: str, start: int, end: int) -> bool:
    """Whether commas part it from more numbers."""
    return _COMMA_BEFORE.search(text, max(0, start - 3), start) is not None or _COMMA_AFTER.match(text, end) is not None


def _in_hash(text: str, start: int, end: int) -> bool:
    around = _HASH.search(text, max(0, start - 64), end + 64)
    return around is not None and around.start() < start + 1 and around.end() > end and not around[0].isdigit()


def _loose(reading: Reading, at: int, loose: Loose) -> Iterator[Span]:
    """What a cue that ends at `at` makes of the digits right behind it."""
    reading.budget.spend(_CUE_COST)
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
    for start, stop in groups[index : index + loose.groups]:
        if digits and text[last:start] not in _SEPARATORS:
            break
        last = stop
        digits += text[start:stop]
        if len(digits) > loose.most:
            break
        if len(digits) >= loose.fewest:
            end = stop
    return end if end is not None and len(set(digits)) > 1 else None
