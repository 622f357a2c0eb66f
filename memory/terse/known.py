"""What the log says already."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

from memory.stems import plain, stems

_SAME = 0.8  # of the words of two texts: one says what the other says


class Said:
    """Texts by their words, to find one that says the same: as fast for the thousandth as for the first."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._plain: set[str] = set()
        self._by_word: dict[str, list[frozenset[str]]] = defaultdict(list)
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        words = stems(text)
        self._plain.add(plain(text))
        for word in _signature(words):
            self._by_word[word].append(words)

    def says(self, text: str) -> bool:
        """Whether some text is the same but for case and marks, or shares four fifths of its words and all its numbers."""
        if plain(text) in self._plain:
            return True
        words = stems(text)
        return any(_alike(words, known) for word in _signature(words) for known in self._by_word.get(word, ()))


def _signature(words: frozenset[str]) -> list[str]:
    """Two sets that are alike share a word among these of each: the longest, so mostly the rarest."""
    few = len(words) - ceil(len(words) * _SAME) + 1
    return sorted(words, key=lambda word: (-len(word), word))[:few] if words else []


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    common = len(one & other)
    return common >= _SAME * (len(one) + len(other) - common) and _numbers(one) == _numbers(other)


def _numbers(words: frozenset[str]) -> set[str]:
    """What differs by a number only, a date among them, is another fact."""
    return {word for word in words if word[0].isdigit()}
