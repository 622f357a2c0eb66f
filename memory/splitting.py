"""A text in pieces that each fit a number of tokens, without losing a character, in linear time."""

import re
import unicodedata
from collections.abc import Iterator

from memory import tokens

# After a line's end, after a sentence's end before a space, after a full stop of a script that sets no spaces.
_BOUNDARY = re.compile(r"\n\s*|[.!?…։።]['\"”’)\]»]*\s+|[。！？｡；؟।॥]['\"”’」』）]*\s*")
_ZERO_WIDTH_JOINER = "\u200d"
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_CLUSTER = 64  # characters that one grapheme may have before it is cut all the same


def pieces(text: str, budget: int) -> list[str]:
    """`text` cut where a line or a sentence ends, within one that is too long between characters as a reader sees them.

    Joined, the pieces are `text`. Each is at most `budget` tokens, unless a single character is more.
    """
    cut: list[str] = []
    held: list[str] = []
    room = budget
    for unit in _units(text, budget):
        size = tokens.count(unit)
        if held and size > room:
            held, ready = _parted(held, budget)
            cut.append(ready)
            room = budget - tokens.count("".join(held))
        if held and size > room:
            cut.append("".join(held))
            held, room = [], budget
        held.append(unit)
        room -= size
    return [piece for whole in [*cut, "".join(held)] if whole for piece in _within(whole, budget)]


def _units(text: str, budget: int) -> Iterator[str]:
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        yield from _within(text[start : boundary.end()], budget)
        start = boundary.end()
    if start < len(text):
        yield from _within(text[start:], budget)


def _parted(held: list[str], budget: int) -> tuple[list[str], str]:
    """What stays back and what is ready: up to the last line's end where that leaves the piece at least half full."""
    lines = [at for at, unit in enumerate(held, 1) if "\n" in unit]
    if lines and lines[-1] < len(held):
        ready = "".join(held[: lines[-1]])
        if 2 * tokens.count(ready) >= budget:
            return held[lines[-1] :], ready
    return [], "".join(held)


def _within(text: str, budget: int) -> Iterator[str]:
    """`text` in pieces of at most `budget` tokens by their length alone."""
    size = tokens.count(text)
    if size <= budget:
        yield text
        return
    start, length = 0, max(1, len(text) * budget // size)
    while start < len(text):
        end = _fitting_end(text, start, length, budget)
        yield text[start:end]
        taken = max(1, tokens.count(text[start:end]))
        length = max(1, min(2 * length, (end - start) * budget // taken))
        start = end


def _fitting_end(text: str, start: int, length: int, budget: int) -> int:
    end = min(len(text), start + length)
    while end - start > 1 and (size := tokens.count(text[start:end])) > budget:
        end = start + max(1, min(end - start - 1, (end - start) * budget // size))
    return end if end == len(text) else _between_graphemes(text, start, end)


def _between_graphemes(text: str, start: int, end: int) -> int:
    space = text.rfind(" ", start + (end - start) * 4 // 5, end)
    if space > start:
        return space + 1
    for at in range(end, max(start, end - _CLUSTER), -1):
        if not _joined(text, start, at):
            return at
    return end


def _joined(text: str, start: int, at: int) -> bool:
    """Whether the characters before and after `at` are one to a reader."""
    before, after = text[at - 1], text[at]
    if before in _FLAG_HALVES and after in _FLAG_HALVES:
        window = text[max(start, at - _CLUSTER) : at]
        return (len(window) - len(window.rstrip(_FLAG_HALVES))) % 2 == 1
    return (
        unicodedata.category(after) in {"Mn", "Mc", "Me"}
        or _ZERO_WIDTH_JOINER in {before, after}
        or (before == "\r" and after == "\n")
        or "\u1160" <= after <= "\u11ff"  # the vowel or the end of a Hangul syllable
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # a skin tone
        or "\U000e0020" <= after <= "\U000e007f"  # a tag within a flag
    )
