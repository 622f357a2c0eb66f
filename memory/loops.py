"""A model that has lost its way says the same again and again; found in time linear in the text."""

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w{1,8}")  # a long run without spaces counts as many words, so that its period shows
_CHUNK = 8  # characters of a text that hardly holds words
_SHINGLE = 6  # words
_BLOCK = 240  # words looked at together
_LEAST = 48  # words below which nothing is called a loop
_NEW = 0.25  # a block with fewer new shingles than this share is a loop
_BLANK = 400  # characters of white space at one go


def looping(text: str) -> bool:
    """Whether `text`, or a stretch of it, repeats itself far beyond what a list of short facts does."""
    if blank(text):
        return True
    words = _WORD.findall(text.casefold())
    if 2 * sum(map(len, words)) < len(text.replace(" ", "")):
        words = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    return any(_stale(words[at : at + _BLOCK]) for at in range(0, len(words), _BLOCK))


def blank(text: str) -> bool:
    """Whether `text` runs on in white space: what a server that forces JSON makes of a model with nothing to say."""
    return any(len(run[0]) >= _BLANK for run in re.finditer(r"\s+", text))


def repeating(texts: Sequence[str]) -> bool:
    """Whether a list says the same at least three times over, on average."""
    return len(texts) >= 9 and len(texts) >= 3 * len(set(texts))


def _stale(words: Sequence[str]) -> bool:
    if len(words) < _LEAST:
        return False
    shingles = [tuple(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)]
    return len(set(shingles)) < _NEW * len(shingles)
