"""Where a text says what the number or name beside it is. Every word is looked up once."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from privacy.view import fold, plain
from privacy.vocabulary import FILLERS, NUMBERS, PHRASES, QUIET

REACH = 40  # characters from a cue to what it speaks of
_AFTER = 25
_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_](?![^\W\d_]))*")  # "c.p.f" is one word
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?]\s|\n\s*\n|[0-9]{4}")


@dataclass(frozen=True, slots=True)
class Cues:
    """Every cue of a text, in order; `families[i]` stands at `starts[i]:ends[i]`, `phrases` are those before a name."""

    text: str  # in lower case
    starts: list[int]
    ends: list[int]
    families: list[str]
    phrases: list[tuple[int, int, str]]

    def before(self, at: int) -> tuple[str, str] | None:
        """The nearest cue's family and the text between it and `at`."""
        index = bisect_left(self.starts, at) - 1
        if index < 0 or at - self.ends[index] > REACH or self.ends[index] > at:
            return None
        gap = self.text[self.ends[index] : at]
        return None if _SENTENCE_END.search(gap, 2) else (self.families[index], gap)

    def after(self, at: int) -> str | None:
        """The family of a cue that follows at once, as in "X0000000 is my passport"."""
        index = bisect_left(self.starts, at)
        if index == len(self.starts) or self.starts[index] - at > _AFTER:
            return None
        gap = self.text[at : self.starts[index]]
        return None if any(mark in gap for mark in ".,;:\n0123456789") else self.families[index]

    def phrased(self, *families: str) -> Iterator[tuple[int, int, str]]:
        """The phrases of these families."""
        return (phrase for phrase in self.phrases if phrase[2] in families)


def cues(text: str) -> Cues:
    """The cues in `text`, which is folded; letter case does not matter."""
    numbers, phrases, closing, every = _numbers(), _phrases(), _closing(), _every()
    lowered = lower(text)
    found: list[tuple[int, int, str]] = []
    said: list[tuple[int, int, str]] = []
    before, last = "", 0
    for match in _WORD.finditer(lowered):
        word = match[0]
        if word not in every and "." not in word:
            before, last = word, match.end()
            continue
        word = word.replace(".", "")
        pair = f"{before} {word}" if word in closing and match.start() - last <= 1 else ""
        if family := numbers.get(pair) or numbers.get(word):
            found.append((match.start(), match.end(), family))
        if families := phrases.get(pair) or phrases.get(word):
            said += [(match.start(), match.end(), family) for family in families]
        before, last = word, match.end()
    if not text.isascii():
        found += [(match.start(), match.end(), numbers[match[0]]) for match in _unspaced_numbers().finditer(lowered)]
        said += [(match.start(), match.end(), phrases[match[0]][0]) for match in _unspaced_phrases().finditer(lowered)]
        found.sort()
    return Cues(lowered, [cue[0] for cue in found], [cue[1] for cue in found], [cue[2] for cue in found], said)


def lower(text: str) -> str:
    """In lower case, every character in its place: a rare letter grows when lowered, and is left as it is."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return lowered


def fills(gap: str) -> bool:
    """Whether nothing but filler ("number is") stands between a cue and what follows."""
    return all(word.replace(".", "") in FILLERS for word in _WORD.findall(gap))


@cache
def loud() -> frozenset[str]:
    """The words without which nothing is announced in a text without capitals, colons and digits; in plain letters."""
    phrases = (words for family, words in PHRASES.items() if family not in QUIET)
    return frozenset(plain(word.rsplit("_", 1)[-1]) for words in (*phrases, NUMBERS["mac"]) for word in words.split())


@cache
def labels() -> frozenset[str]:
    """The words that announce a name where a colon follows; in plain letters."""
    return frozenset(map(plain, PHRASES["label"].split()))


@cache
def _numbers() -> dict[str, str]:
    return {fold(word.replace("_", " ")): family for family, words in NUMBERS.items() for word in words.split()}


@cache
def _closing() -> frozenset[str]:
    """The second words of the cues that have two."""
    return frozenset(cue.split()[1] for cue in (*_numbers(), *_phrases()) if " " in cue)


@cache
def _every() -> frozenset[str]:
    """Every word that is a cue or ends one."""
    return frozenset(word for cue in (*_numbers(), *_phrases()) for word in cue.split()[-1:])


@cache
def _phrases() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for family, words in PHRASES.items():
        for word in words.split():
            cue = fold(word.replace("_", " "))
            found[cue] = (*found.get(cue, ()), family)
    return found


def _anywhere(words: Iterable[str]) -> re.Pattern[str]:
    """The cues of scripts that write no spaces: they are found in the middle of what looks like a word."""
    found = sorted((word for word in words if _UNSPACED.search(word)), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, found)))


@cache
def _unspaced_numbers() -> re.Pattern[str]:
    return _anywhere(_numbers())


@cache
def _unspaced_phrases() -> re.Pattern[str]:
    return _anywhere(_phrases())
