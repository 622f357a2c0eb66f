"""Cutting a text into sentences, in any script, in one pass."""

import re
from collections.abc import Iterator

LONGEST = 600  # characters; what runs on without an end is cut at a space, so that no note holds a whole page

_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "sra",
        "dra",
        "st",
        "jr",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "no",
        "nr",
        "tel",
        "approx",
        "dept",
        "fig",
        "av",
    ]
)
_END = re.compile(
    r"(?P<stop>[.!?…]+)[\"'”’)\]]*(?=\s|$)"  # a full stop only before a space: 3.5, example.com and v1.2 stay whole
    r"|[。！？；।॥؟۔።]+[”」』）]*"
    r"|\n+"
)
_ASKS = re.compile(
    r"\W*(?:(?:hi|hey|hello|so|and|but|also|ok(?:ay)?)\W+){0,2}(?:(?:what|how|where|when|who|why|which)(?:'s|’s|\s(?:is|are|was|were|do|does|did|can"
    r"|could|should|would|will|am|about|many|much|long|far))\s(?!\w+\s(?:to|for)\sme\sis\b)"
    r"|(?:do|does|did|is|are|was|were|have|has|am)\s(?:you|there|it|i|we|they|he|she)\b)",
    re.IGNORECASE,
)
_GREEK = re.compile(r"[\u0370-\u03ff]")
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\.$")
_MONTHS_BEGIN = ("Jan", "Jän", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez")
_LAST_WORD = re.compile(r"([\w.]{1,12})\.$")


def split(text: str) -> Iterator[str]:
    """The sentences of `text`, without the space around them; none is empty or longer than `LONGEST`."""
    start = 0
    for match in _END.finditer(text):
        before = text[max(start, match.start() - 12) : match.start() + 1]
        if match["stop"] == "." and (_is_abbreviation(before) or _counts_a_day(before, text[match.end() :][:4])):
            continue
        yield from _bounded(text[start : match.end()])
        start = match.end()
    yield from _bounded(text[start:])


def is_question(sentence: str) -> bool:
    if sentence.endswith(";") and _GREEK.search(sentence):
        return True  # their question mark
    ending = sentence.rstrip("\"'”’)] !…")
    return ending.endswith(("?", "？", "؟", "\u037e", "吗", "嗎", "呢")) or sentence.startswith("¿") or asks(sentence)


def asks(sentence: str) -> bool:
    """Whether an English sentence is built as a question, though no mark says so: "how do I get there"."""
    return _ASKS.match(sentence) is not None


def _is_abbreviation(before: str) -> bool:
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    bare = word[1].lower()
    return bare in _ABBREVIATIONS or (len(bare) == 1 and bare.isalpha() and word[1].isupper() and bare != "i")


def _counts_a_day(before: str, after: str) -> bool:
    """The stop of an ordinal, as German writes a date: "am 3. Mai"."""
    return _ORDINAL.search(before) is not None and after.lstrip().startswith(_MONTHS_BEGIN)


def _bounded(sentence: str) -> Iterator[str]:
    rest = sentence.strip()
    while len(rest) > LONGEST:
        cut = rest.rfind(" ", LONGEST // 2, LONGEST)
        cut = LONGEST if cut < 0 else cut
        yield rest[:cut].rstrip()
        rest = rest[cut:].lstrip()
    if rest:
        yield rest
