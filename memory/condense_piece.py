"""A line of the log in pieces that can stay or go each for itself."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory import dates
from memory.observation import Interval, Line
from memory.reckoning.language import language_of
from memory.stems import stems
from memory.terse.clause import Subject, clauses, subject_of, telling
from memory.terse.token import Token, tokens
from memory.terse.wording import wording
from memory.terse.words import Part

_WORDS_OF_PROSE = frozenset({"a", "an", "the", "his", "their", "my", "our", "its"})  # a terse note has none of them
_LOOSE = 0.05  # share of silent words that a line without a label may have, and still be terse
_LABEL = re.compile(r"[^:;,.]{1,40}: ")


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that say one thing, what they are about, the days and names that they hold."""

    text: str
    about: frozenset[str]
    length: int
    days: frozenset[Interval]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pieces:
    """All pieces of a line. `terse`: they are its own text, uncut; `label` says whose line it is, or is empty."""

    line: Line
    label: str
    pieces: tuple[Piece, ...]
    terse: bool


def taken_apart(line: Line) -> Pieces:
    """The line's clauses where it is English prose, else what its semicolons part."""
    label = _LABEL.match(line.text)
    head = label[0] if label else ""
    body = line.text[len(head) :]
    words = tokens(body, line.observed_at, frozenset()) if language_of(body) == "en" else []
    if not _is_prose(words, body, head):
        return Pieces(line, head, tuple(_as_written(body, line)), terse=True)
    return Pieces(line, head, tuple(_made_terse(words)), terse=False)


def _is_prose(words: Sequence[Token], body: str, label: str) -> bool:
    """Whether there is something to cut, or a date to resolve."""
    silent = sum(word.part is Part.SILENT for word in words)
    if any(word.days and word.text not in body for word in words):
        return True
    return any(word.low in _WORDS_OF_PROSE for word in words) or (not label and silent > _LOOSE * len(words))


def _as_written(body: str, line: Line) -> Iterator[Piece]:
    for text in body.split("; "):
        days = frozenset(mention.interval for mention in dates.resolve(text, line.observed_at))
        yield Piece(text, stems(text), len(text.split()), days, _capitals(text))


def _made_terse(words: Sequence[Token]) -> Iterator[Piece]:
    """Each clause as a note; "she", where only one person was named before, by that name."""
    named: list[str] = []
    for clause in clauses(words):
        subject = subject_of(clause)
        note = wording(clause, subject, {}, praise=True)
        own = [word.text for word in telling(clause) if word.text[0].isupper() and not word.days]
        if note and subject is Subject.OTHERS and len(named) == 1 and note[0] in {"he", "she"}:
            note[0] = named[0]
        named = own or named
        if note:
            text = " ".join(note).replace(" ,", ",")
            days = frozenset(word.days for word in clause if word.days)
            yield Piece(text, stems(text), len(note), days, frozenset(own))


def _capitals(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", text) if word[0].isupper())
