"""Words and phrases found in a log, best first, in any script: in memory, since a log is small by design."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from memory.observation import Line

_PHRASE = re.compile(r"[\"“”„«»「『]([^\"“”„«»「」『』]+)[\"“”«»」』]")
# Scripts that set no spaces between words, or hang particles onto them: cut into pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SATURATION, _LENGTH = 1.2, 0.75  # BM25's k1 and b
_STEM = 4  # letters that two forms of a word share at least
_ENDING = 3  # letters by which they may differ
_FORM = 0.6  # what another form of a word is worth
_LONGEST = 64  # terms of a query
_TOGETHER = 0.5  # added for two words of the query side by side


def search(lines: Sequence[Line], query: str, limit: int) -> list[tuple[Line, float]]:
    """At most `limit` lines that hold a word of `query`, by BM25; what stands in quotes must stand in the line as it is.

    Accents and case are folded. Equal scores: the newer line first.
    """
    wanted = list(dict.fromkeys(terms(query)))[:_LONGEST]
    phrases = [folded(phrase) for phrase in _PHRASE.findall(query)]
    if not wanted or limit < 1:
        return []
    texts = [folded(line.text) for line in lines]
    found = [at for at, text in enumerate(texts) if all(phrase in text for phrase in phrases)]
    counts = [Counter(_terms(texts[at])) for at in found]
    scores = _ranked(counts, wanted)
    pairs = list(pairwise(wanted))
    scored = [
        (lines[at], score * (1 + _TOGETHER * _side_by_side(texts[at], pairs)))
        for at, score in zip(found, scores, strict=True)
        if score > 0
    ]
    scored.sort(key=lambda one: (-one[1], -one[0].observed_at.timestamp(), -one[0].id))
    return scored[:limit]


def terms(text: str) -> list[str]:
    """The words of `text`, folded; of scripts without spaces, each pair of characters."""
    return list(_terms(folded(text)))


def folded(text: str) -> str:
    """`text` without case, accents, width and doubled spaces."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(map(_unaccented, plain)).split())


@cache
def _unaccented(character: str) -> str:
    """Without accents and vowel points on letters from Latin to Arabic; further on a mark is a vowel, and stays."""
    base = unicodedata.normalize("NFD", character)[0]
    if base >= "\u0700":
        return character
    return "" if unicodedata.category(base) == "Mn" else base


def _terms(text: str) -> Iterator[str]:
    for word in "".join(map(_worded, text)).split():
        yield from _pieces(word) if _UNSPACED.search(word) else (word,)


@cache
def _worded(character: str) -> str:
    """What is part of a word; the rest is a space. A regular expression's word would leave out the vowels of Hindi."""
    return character if character.isalnum() or unicodedata.category(character) in {"Mn", "Mc"} else " "


def _pieces(word: str) -> Iterator[str]:
    """A word that is unspaced as a whole or in part: pairs of its unspaced runs, the rest as words."""
    start = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > start:
            yield word[start : run.start()]
        pair = run[0]
        yield from [pair] if len(pair) == 1 else (pair[at : at + 2] for at in range(len(pair) - 1))
        start = run.end()
    if start < len(word):
        yield word[start:]


def _ranked(counts: Sequence[Counter[str]], wanted: Sequence[str]) -> list[float]:
    scores = [0.0] * len(counts)
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / max(1, len(lengths)) or 1.0
    vocabulary = set().union(*counts)
    for term in wanted:
        forms = {other: worth for other in vocabulary if (worth := _worth(term, other))}
        held = [sum(count[form] * worth for form, worth in forms.items() if form in count) for count in counts]
        holding = sum(1 for weight in held if weight)
        rarity = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for at, weight in enumerate(held):
            norm = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[at] / average)
            scores[at] += rarity * weight * (_SATURATION + 1) / (weight + norm) if weight else 0.0
    return scores


def _worth(term: str, other: str) -> float:
    """What `other` counts for `term`: the same word, another form of it, a pair that holds a lone character."""
    if term == other:
        return 1.0
    if _UNSPACED.match(term):
        return _FORM if len(term) == 1 and term in other else 0.0
    shorter, longer = sorted((term, other), key=len)
    alike = len(shorter) >= _STEM and len(longer) - len(shorter) <= _ENDING and longer.startswith(shorter)
    return _FORM if alike else 0.0


def _side_by_side(text: str, pairs: Sequence[tuple[str, str]]) -> float:
    if not pairs:
        return 0.0
    return sum(f"{one} {other}" in text or f"{one}{other[1:]}" in text for one, other in pairs) / len(pairs)
