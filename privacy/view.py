"""How a text reads to a detector: look-alike characters folded, one level of escapes decoded, each with a way back.

Detectors know ASCII digits, dots, dashes and spaces only. A view has those, and says which characters of the original
each of its own came from, so that what is masked is always the original.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

from privacy.budget import Budget

_ESCAPE_COST = 3  # units
_LONGEST_EXPANSION = 4  # one character that folds to more is no digit and no letter, and would only swell the text
_IDEOGRAPHIC_STOP = re.compile(r"(?<=[A-Za-z0-9])[。｡](?=[A-Za-z0-9])")  # a dot inside an address, else a full stop
_ESCAPE = re.compile(
    r"(?P<percent>(?:%(?:25)*[0-9A-Fa-f]{2})+)"
    r"|(?<!\\)\\++(?:u(?P<unicode>[0-9A-Fa-f]{4})|(?P<control>[nrtbf]))"
    r"|(?P<entity>&(?:amp;){0,3}(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});)"
)
_AMPERSANDS = re.compile(r"\A&(?:amp;)*(?=.)")
_BYTE = re.compile(
    r"%(?:25)*([0-9A-Fa-f]{2})"
)  # "%2540" is "%40" escaped once more, as happens on a way through two servers
_ESCAPE_MARKS = re.compile(r"[%\\&]")


@dataclass(frozen=True, slots=True)
class View:
    """`starts[i]` and `ends[i]` bound the characters of the original behind `text[i]`; None: they are the same."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the original behind `text[start:end]`, which is not empty."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def views(text: str, budget: Budget) -> list[View]:
    """The folded view, and where the text holds escapes a second one that has them decoded."""
    folded = View(text) if text.isascii() else _fold(text)
    if _ESCAPE_MARKS.search(folded.text) is None:
        return [folded]
    decoded = _decode(folded, budget)
    return [folded] if decoded is None else [folded, decoded]


def fold(text: str) -> str:
    """`text` as the folded view has it, where no way back is needed."""
    return text if text.isascii() else "".join(map(_FOLDS.__getitem__, text))


def plain(text: str) -> str:
    """`text` in lower case and without accents, every character in its place."""
    return text.lower() if text.isascii() else "".join(map(_PLAIN.__getitem__, text))


class _Plain(dict[str, str]):
    def __missing__(self, letter: str) -> str:
        base = unicodedata.normalize("NFD", letter)[:1].lower()
        self[letter] = base = _STROKED.get(base, base if len(base) == 1 else letter)
        return base


_STROKED = {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "ħ": "h", "ß": "s"}
_PLAIN = _Plain()


class _Folds(dict[str, str]):
    """Character to what stands for it; filled as characters are met."""

    def __missing__(self, character: str) -> str:
        self[character] = folded = _folded(character)
        return folded


def _folded(character: str) -> str:
    if character.isascii():
        return character
    category = unicodedata.category(character)
    if category == "Cf" or _combines(ord(character)):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category in ("Zs", "Zl", "Zp"):
        return " " if category == "Zs" else "\n"
    if category == "Pd" or character in "−⁃":
        return "-"
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if len(compatible) <= _LONGEST_EXPANSION else character


def _combines(code: int) -> bool:
    """Accents that stand alone after their letter, variation selectors, and fillers that show nothing."""
    return 0x300 <= code <= 0x36F or 0xFE00 <= code <= 0xFE0F or code in (0x115F, 0x1160, 0x3164, 0xFFA0)


_FOLDS = _Folds()


def _fold(text: str) -> View:
    text = _IDEOGRAPHIC_STOP.sub(".", text)
    pieces = list(map(_FOLDS.__getitem__, text))
    joined = "".join(pieces)
    lengths = list(map(len, pieces))
    if min(lengths) == 1 == max(lengths):
        return View(joined)
    starts = [at for at, length in enumerate(lengths) for _ in range(length)]
    return View(joined, starts, _ends(text, starts))


def _ends(text: str, starts: list[int]) -> list[int]:
    """A letter ends behind the accents that follow it, or masking would leave them hanging."""
    return [_end(text, start + 1) for start in starts]


def _end(text: str, end: int) -> int:
    while end < len(text) and not text[end].isascii() and _combines(ord(text[end])):
        end += 1
    return end


def _decode(view: View, budget: Budget) -> View | None:
    """The view with its escapes as the characters they stand for; None where it has none."""
    text, before = view.text, (view.starts or range(len(view.text)), view.ends or range(1, len(view.text) + 1))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for escape in _ESCAPE.finditer(text):
        decoded = _decoded(escape)
        if decoded is None:
            continue
        budget.spend(_ESCAPE_COST)
        at, end = escape.span()
        each = 3 if escape["percent"] and len(decoded) * 3 == end - at else 0  # %XX for each: bounded one by one
        pieces += (text[done:at], decoded)
        starts += before[0][done:at]
        ends += before[1][done:at]
        starts += before[0][at:end:each] if each else [before[0][at]] * len(decoded)
        ends += before[1][at + 2 : end : each] if each else [before[1][end - 1]] * len(decoded)
        done = end
    if not pieces:
        return None
    return View("".join([*pieces, text[done:]]), [*starts, *before[0][done:]], [*ends, *before[1][done:]])


def _decoded(escape: re.Match[str]) -> str | None:
    """What an escape stands for, folded; None where it stands for nothing."""
    if escape["percent"]:
        decoded = bytes.fromhex("".join(_BYTE.findall(escape["percent"]))).decode("utf-8", "replace")
    elif escape["unicode"]:
        decoded = chr(int(escape["unicode"], 16))
    elif escape["control"]:
        return "\n"
    else:
        return _named("&" + _AMPERSANDS.sub("", escape["entity"]))
    return fold(decoded)


@lru_cache(maxsize=4_096)
def _named(entity: str) -> str | None:
    decoded = unescape(entity)
    return None if decoded == entity else fold(decoded)
