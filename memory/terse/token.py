"""An English sentence as words that know what they do in a note."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from memory import dates
from memory.observation import Interval
from memory.reckoning.written import in_place_of, written
from memory.terse.words import PARTS, PRONOUNS, Part

_LONGEST_WORD = 60  # longer is no word: encoded data, a key, keys leaned upon
_PIECE = re.compile(
    r"<[A-Z][A-Z0-9_]{0,40}(?::[^<>\s]{1,80})?>|https?://\S{1,200}|\d{1,2}:\d\d(?:\s?[ap]m\b)?(?:–\d{1,2}:\d\d(?:\s?[ap]m\b)?)?|[$€£]?\d{1,3}(?:,\d{3})+(?:\.\d+)?%?|(?:[^\s,;:!?()…\"“”–—\[\]{}|]|(?<=\w)–(?=\w))+|[,;:()…–—\"“”\[\]{}|]"
)
_EDGES = ".'*_~`^=\\"
# What only fills: gone before a sentence is read.
_PADDING = re.compile(
    r"\b(?:you know|i mean|i guess|i think|i bet|i gotta say|i have to say|i must say|to be honest|of course|for sure|by the way|in fact"
    r"|(?:and )?ha(?:d|ve|ving) (?:an? )?(?:\w{1,12} )?(?:time|blast)\b(?! to)|as well|at all|at least(?!\s(?:\d|two|three|four|five|six|seven|eight|nine|ten))|(?:i |we )?can't wait (?:to|for)|as for me|speaking of which|it turns out|turns out|no doubt|no wonder"
    r"|kind of|sort of|a (?:bit|lot)(?: of)?|lots of|right now|these days|out there|so much|such an?|i just|not only|just in case)\b",
    re.IGNORECASE,
)


# Vague, so that no days are named; yet a reader of the note must know from when it counts.
_VAGUE_PAST = re.compile(
    r"\b(?:a |the last |the past )?(?:few|several) (days|weeks|months|years) (?:ago|back)\b", re.IGNORECASE
)

_BOUND_LAST = re.compile(r"(\d[\d.,]*(?: \w{1,20})?) at (most|least)\b(?! \d)", re.IGNORECASE)


class Token(NamedTuple):
    """A word as the note would write it, in lower case, what it does, and the days that it names."""

    text: str
    low: str
    part: Part
    days: Interval | None = None


def tokens(sentence: str, said_at: datetime, common: frozenset[str]) -> list[Token]:
    """The words and marks of `sentence`; a date is one word, written out.

    `common` are words that the chat also writes without a capital: at the head of a sentence they lose theirs.
    """
    found: list[Token] = []
    sentence = _BOUND_LAST.sub(r"at \2 \1", sentence.replace("’", "'"))
    for piece in _pieces(_PADDING.sub(" ", sentence), said_at):
        if isinstance(piece, Token):
            found.append(piece)
        else:
            found.extend(_read(piece, found, common))
    return found


def _pieces(sentence: str, said_at: datetime) -> Iterator[str | Token]:
    start = 0
    for begin, end, times in _times(sentence, said_at):
        yield from _PIECE.findall(sentence[start:begin])
        yield times
        start = end
    yield from _PIECE.findall(sentence[start:])


def _times(sentence: str, said_at: datetime) -> list[tuple[int, int, Token]]:
    """Where the sentence says when, and how the note says it."""
    found = []
    for mention in dates.resolve(sentence, said_at):
        text = in_place_of(sentence[mention.start : mention.end], mention.interval)
        found.append((mention.start, mention.end, Token(text, text, Part.TELLS, mention.interval)))
    for vague in _VAGUE_PAST.finditer(sentence):
        text = f"few {vague[1].lower()} before {written(Interval(said_at.date(), said_at.date()))}"
        found.append((vague.start(), vague.end(), Token(text, text, Part.TELLS)))
    return sorted(found, key=lambda one: one[0])


def _read(piece: str, before: list[Token], common: frozenset[str]) -> Iterator[Token]:
    bare = piece.strip(_EDGES)
    if not bare[:1].isalnum() and not any(map(str.isalnum, bare)):
        if piece == "&":
            yield Token("and", "and", Part.LINK)
        elif piece not in {'"', "“", "”"} and bare:
            yield Token(piece, piece, Part.MARK)
        return
    word = bare.strip("-")
    if len(word) > _LONGEST_WORD and not word.startswith("http"):
        return
    yield _word(word, common, heads=not before or before[-1].part is Part.MARK)
    if bare.endswith("-"):
        yield Token("-", "-", Part.MARK)


def _word(word: str, common: frozenset[str], *, heads: bool) -> Token:
    low = word.lower()
    listed = PARTS.get(low) or PARTS.get(low.removesuffix("'s"))
    if heads and word[0].isupper() and (listed or low in common) and not word.isupper():
        word = low
    elif word.isupper() and len(word) > 1 and low in common:
        word = low  # SHOUTED
    elif listed and not heads and word[0].isupper() and len(word) > 2 and low not in PRONOUNS and not word.isupper():
        listed = None  # "Great Expectations", in the middle of a sentence, is a name
    return Token(word, low, listed or Part.TELLS)
