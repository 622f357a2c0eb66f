"""What the log says already."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

from memory import particulars
from memory.checks import normalise
from memory.stems import stemmed

_SAME = 0.8  # of the words of a text: those that another must not add to


class Said:
    """Texts by their words, to find one that says the same: as fast for the thousandth as for the first."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._stems: list[tuple[str, ...]] = []
        self._same: dict[str, list[int]] = defaultdict(list)
        self._holding: dict[str, list[int]] = defaultdict(list)
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        place, said = len(self._texts), stemmed(text)
        self._texts.append(text)
        self._stems.append(said)
        self._same[normalise(text)].append(place)
        for word in frozenset(said):
            self._holding[word].append(place)

    def says(self, text: str) -> bool:
        """Whether some text says all that this one says; see `places`."""
        return next(self.places(text), None) is not None

    def places(self, text: str) -> Iterator[int]:
        """Which of the texts, counted from 0, say the same.

        They are equal but for case and marks; or hold all its telling words in the same order, its numbers and names among
        them, and hardly any besides. What differs by a number, a name or a "not" is another fact.
        """
        same = self._same.get(normalise(text), ())
        yield from same
        said = stemmed(text)
        if not said or any(map(_is_mark, text)):
            return
        rarest = min(said, key=lambda word: len(self._holding.get(word, ())))
        for place in self._holding.get(rarest, ()):
            if place not in same and self._holds(place, said, text):
                yield place

    def _holds(self, place: int, said: tuple[str, ...], text: str) -> bool:
        known = self._stems[place]
        return (
            len(said) >= _SAME * len(known)
            and particulars.in_order(said, known)
            and particulars.signs(text) == particulars.signs(self._texts[place])
            and particulars.stands_in(text, self._texts[place])
            and particulars.in_order(particulars.numbers(text), particulars.numbers(self._texts[place]))
        )


def _is_mark(character: str) -> bool:
    """A vowel sign or an accent that stands apart: stems pass over it, though it may tell two names apart."""
    return character > "\u02ff" and unicodedata.category(character)[0] == "M"
