"""Names in a text that nobody may search for in the clear: each run of words, folded, so that its keyed hash can be compared.

A character of a script that is written without spaces counts as a word: that is how names of such scripts are found.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from privacy import vocabulary
from privacy.known import reads_as_name
from privacy.view import fold, plain

LONGEST = 4  # words by which a name is looked up; a longer one is found by its first four, and then compared whole

_WORD = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


# Handles that people are given in a hurry, and that stand in anybody's text.
_ORDINARY = vocabulary.words(
    """
    account acme admin administrator agent all and anonymous any api app are ask assistant backend bot but can chat
    client cliente code company conta contact cuenta customer data default demo desk dev developer employee example external
    for foo from get guest had has have help her him his home how info internal its job key let live local log login mail
    main manager may member model name new nobody none not now null off one operator order our out owner para person pessoa
    por primary prod production public que question root sales see self server service she shop site some somebody someone
    staff store support system task team test tester testing that the them there they this tool two uno use user usuario
    usuário via was web what when who why will with work worker you your
    """
)


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words, folded, and where each stands in `text`."""

    text: str
    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Case, accents, signs and widths make no difference."""
        text = fold(unicodedata.normalize("NFC", text))
        flat = plain(text)
        places = tuple(found.span() for found in _WORD.finditer(flat))
        return cls(text, tuple(flat[start:end] for start, end in places), places)

    def run(self, start: int, words: int) -> str:
        """So many words from one on; "" where there are fewer."""
        return " ".join(self.words[start : start + words]) if start + words <= len(self.words) else ""

    def grams(self) -> dict[str, list[int]]:
        """Each run of one to four words, with the words at which it begins. At most four for each word."""
        found: dict[str, list[int]] = {}
        for start in range(len(self.words)):
            for words in range(1, min(LONGEST, len(self.words) - start) + 1):
                found.setdefault(self.run(start, words), []).append(start)
        return found

    def name(self, start: int, words: int) -> bool:
        """Whether a registered name stands there: one word that is also an ordinary one may be just that."""
        return words > 1 or reads_as_name(self.text, *self.places[start])


@dataclass(frozen=True, slots=True)
class Form:
    """How a name is compared: `whole`, all its words; `head`, the first four."""

    whole: str
    head: str
    words: int

    @classmethod
    def of(cls, name: str) -> "Form":
        """`words` is 0 for what has none."""
        words = Words.of(name).words
        return cls(" ".join(words), " ".join(words[:LONGEST]), len(words))


def is_ordinary(handle: str) -> bool:
    """Whether a handle is a word that says nothing of anybody: "you", "support"."""
    return handle.casefold() in _ORDINARY


def phrases(text: str) -> Iterator[str]:
    """Each run of one to four words as they stand, without the signs around them: what ids and handles look like.

    A single word of small letters is left out, and one that is ordinary however it is written: a handle like that is also
    a word of the language.
    """
    words = [word for part in text.split() if (word := part.strip(_AROUND))]
    for start in range(len(words)):
        for end in range(start + 1, min(start + LONGEST, len(words)) + 1):
            phrase = " ".join(words[start:end])
            if not (phrase.isalpha() and (phrase.islower() or is_ordinary(phrase))):
                yield phrase


_AROUND = ".,;:!?\"'()[]{}<>“”‘’«»…*`"
