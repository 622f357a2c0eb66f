"""Ids made of digits: cards, tax and health numbers, and the check digits that tell them from an order number.

What is written like an id is found by one pattern and then walked through a trie of known shapes, so that a text of
nothing but digits costs what its length is and no more.
"""

import re
from collections.abc import Iterator

from privacy.check import card, cpf
from privacy.cue import REACH, fills
from privacy.digits import LOOSE, Loose, Rule
from privacy.reading import Reading
from privacy.shape import SEPARATORS, Node, beginnings, parted, trie
from privacy.span import Span

_NO_SEPARATORS = {ord(sign): None for sign in " -./,\n\r"}
_DIGIT = re.compile("[0-9]")
_CHECK_COST = 8  # units of one look at check digits
_CUE_COST = 8
_WALK_COST = 3
_SINGLY = re.compile(r"[0-9](?<![0-9][0-9])(?:([ ,.\-]|, )[0-9](?![0-9]))(?:\1[0-9](?![0-9]))*+")
_SINGLE_KINDS = {
    11: ("CPF", cpf),
    **dict.fromkeys(range(13, 20), ("CREDIT_CARD", card)),
}  # by the digits that there are
_TAIL = re.compile(r"-?[A-Za-z](?![A-Za-z0-9])")
_HASH = re.compile(r"[0-9a-fA-F]{24,}")
_ROW = re.compile(r"[0-9] \||\| [0-9]")
_COMMA_BEFORE, _COMMA_AFTER = re.compile(r"[0-9], ?\Z"), re.compile(r", ?[0-9]")
_RUN = re.compile(r"[0-9]++(?:(?P<gap>[ \-./,\r\n]{1,3})(?=[0-9]))?")


def numbers(reading: Reading) -> Iterator[Span]:
    """Ids by their check digits, then by their cue."""
    done = -1
    for beginning in beginnings(told=reading.telling).finditer(reading.text):
        reading.budget.spend(_WALK_COST)
        if beginning.start() >= done and (found := _longest(reading, beginning.start())):
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


def _longest(reading: Reading, start: int) -> Span | None:
    """The id that begins at this group; of several the one with the most digits."""
    node, at, separators, found = trie(), start, "", None
    while run := _RUN.match(reading.text, at):
        gap = run["gap"]
        end = run.end() - len(gap or "")
        following = node.longer.get(end - at)
        if following is None or (separators and separators[-1] not in following.reached):
            break
        node = following
        asked = node.ends and (reading.telling or node.surely(separators))
        if asked and (kind := _kind(reading, node, separators, start, end)):
            found = Span(start, end, kind)
        if gap not in SEPARATORS or not node.longer:
            break
        separators += SEPARATORS[gap]
        at = run.end()
    return found


def _kind(reading: Reading, node: Node, separators: str, start: int, end: int) -> str | None:
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


def _spoken_of(reading: Reading, node: Node, separators: str, start: int, end: int) -> tuple[Rule, ...]:
    """The rules that a cue speaks for, or silence around the number."""
    families = reading.families(start, end)
    if families:
        return tuple(
            rule
            for rule, shape in node.lone + node.told
            if not families.isdisjoint(rule.families) and parted(shape, separators)
        )
    if node.lone and reading.alone(start, end):
        return tuple(rule for rule, shape in node.lone if parted(shape, separators))
    return ()


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
    first = _DIGIT.search(reading.text, at, at + REACH + 1)
    if first is None:
        return
    start = first.start()
    before = reading.cues.before(start)
    if before is None or len(before[1]) != start - at or not fills(before[1]):
        return
    end = _hanging(reading.text, start, loose)
    if end is not None:
        tail = _TAIL.match(reading.text, end)
        yield Span(start, tail.end() if tail else end, loose.kind)


def _hanging(text: str, at: int, loose: Loose) -> int | None:
    """Where the number ends that begins here: as many groups as the kind has digits for."""
    digits, end = "", None
    for _ in range(loose.groups):
        run = _RUN.match(text, at)
        if run is None:
            break
        stop = run.end() - len(run["gap"] or "")
        digits += text[at:stop]
        if len(digits) > loose.most:
            break
        if len(digits) >= loose.fewest:
            end = stop
        if run["gap"] not in SEPARATORS:
            break
        at = run.end()
    return end if end is not None and len(set(digits)) > 1 else None
