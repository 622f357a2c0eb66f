"""Names and handles that somebody registered, found without any model: whole, in parts, turned round, glued by a sign.

Case and accents do not matter. A part that is also a word ("Will", "May") counts only where it is written like a name.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from privacy.span import Span
from privacy.view import fold, plain
from privacy.vocabulary import words

_TOKEN = re.compile(r"[^\W_]+")
_APART = {code: " " for code in range(128) if not chr(code).isalnum()}
_LETTERS_APART = {code: " " for code in range(128) if not chr(code).isalpha()}
_GAP = re.compile(r"[ \t\n.,_'’+\-]{0,3}")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SIGNS = re.compile(r"[0-9_@/:#]")
_LETTERS = re.compile(r"[^\W\d_]")
_DIGITS = "0123456789"
_SHORTEST_PART = 3
_SHORTEST_LOWER = 4  # a part of three letters counts only with a capital
_SHORTEST_JOINED = 5
_SHORTEST_NUMBER = 7
_TAIL = 8  # the digits of a phone number that stay the same however it is written

_PARTICLES = words("da das de del den der des di do dos du e el al bin ibn la las le los van von y zu jr sr dr")
_ALSO_WORDS = words("""able amber angel april art asia august austin autumn baker bank banks bell best bill bird bishop black bliss bond
    booth branch bright brook brooks brown bush campos carol carter case cash chance chase china christian church cliff cook
    costa cross crow crystal dakota dale daisy dawn day dean drew duke earl eden english faith ferry field fields fisher
    flores ford fox francis frank freeman french gay gene georgia ginger glen gold good grace grant gray green grey guy hall
    hand harmony haven hill holiday holly honor hope house hunter india iris israel ivy jack jade jasmine jewel jordan joy
    judge june justice king knight lake lance lane leite lily little london long love low lucky luz main major mark marshall
    mason may melody mercy miles mill miller moon moore more noble north olive page paris park parks pat paz pearl penny
    pepper pinto poppy pope post potter power precious price prince rain ray read reis rich rios river rivers robin rock rod
    rosa rose ruby sage sandy scout sharp short silver sky small snow sol south spring star stone storm street strong sue
    summer sunny swift terry town true trinity victor violet virginia walker ward waters way webb weeks west white will
    winter wise wolf wood woods worth young""")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:\n\"“(*>-])\s*\Z")
_NUMBER_NEXT = re.compile(r"\s+[0-9]")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A run of tokens to look for; `careful`: one that is also a word."""

    tokens: tuple[str, ...]
    kind: str
    careful: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """Compiled names; make it once with `Known.compile` where many texts are searched for the same ones."""

    entries: Mapping[str, tuple[_Entry, ...]] = field(default_factory=dict)
    unspaced: re.Pattern[str] | None = None
    tails: frozenset[str] = frozenset()

    @classmethod
    def compile(cls, names: Collection[str]) -> "Known":
        """`names` are names, e-mail addresses, phone numbers and ids as they were registered."""
        entries: dict[str, dict[_Entry, None]] = {}
        unspaced: set[str] = set()
        tails: set[str] = set()
        for name in map(fold, names):
            if _UNSPACED.search(name):
                unspaced.update(_unspaced_forms(name))
            tails.update(_tail(name))
            for entry in _entries(name):
                entries.setdefault(entry.tokens[0], {})[entry] = None
        return cls(
            {first: tuple(sorted(found, key=lambda entry: -len(entry.tokens))) for first, found in entries.items()},
            re.compile("|".join(map(re.escape, sorted(unspaced, key=len, reverse=True)))) if unspaced else None,
            frozenset(tails),
        )

    def find(self, text: str) -> Iterator[Span]:
        """Where they stand in `text`, which is folded."""
        if self.unspaced:
            yield from (Span(*found.span(), "PERSON") for found in self.unspaced.finditer(text))
        if not self.entries:
            return
        flat = plain(text)
        if self._missing(flat):
            return
        for token in _TOKEN.finditer(flat):
            word = token[0]
            entries = self.entries.get(word)
            if entries is None and word[-1] in _DIGITS and len(bare := word.rstrip(_DIGITS)) >= _SHORTEST_LOWER:
                entries = self.entries.get(bare)
            if entries is not None and (span := _first(entries, text, flat, token)):
                yield span

    def _missing(self, flat: str) -> bool:
        """Whether a look at the words alone shows that nothing known can be there."""
        words = {*flat.translate(_APART).split(), *flat.translate(_LETTERS_APART).split()}
        return words.isdisjoint(self.entries)

    def is_number(self, digits: str) -> bool:
        """Whether these digits are a registered phone number, with or without its country."""
        return len(digits) >= _SHORTEST_NUMBER and digits[-_TAIL:] in self.tails


def _first(entries: tuple[_Entry, ...], text: str, flat: str, token: re.Match[str]) -> Span | None:
    """The longest of these that stands at `token`."""
    capital = text[token.start()].isupper()
    for entry in entries:
        if entry.careful and not capital:
            continue
        end = _end(flat, token.end(), entry.tokens)
        if end is not None and (not entry.careful or _written_as_name(text, token.start(), end)):
            return Span(token.start(), end, entry.kind)
    return None


def _entries(name: str) -> Iterator[_Entry]:
    tokens = tuple(_TOKEN.findall(plain(name)))
    if not tokens or not any(len(token) > 1 for token in tokens):
        return
    if len(tokens) > 1 and all(token.isdigit() for token in tokens):
        return  # a phone number: its digits are compared, however they are grouped
    if "@" in name:
        yield _Entry(tokens, "EMAIL_ADDRESS")
    elif _SIGNS.search(name) or (len(tokens) == 1 and name.islower()):
        yield _Entry(tokens, "HANDLE", careful=tokens[0] in _ALSO_WORDS and len(tokens) == 1)
    else:
        yield from _name_entries(tokens)


def _name_entries(tokens: tuple[str, ...]) -> Iterator[_Entry]:
    pairs = {tokens, tokens[-1:] + tokens[:-1], (tokens[0], tokens[-1]), (tokens[-1], tokens[0])}
    pairs.update(pairwise(tokens))
    if len(tokens) > 1:
        yield from (_Entry(pair, "PERSON") for pair in sorted(pairs) if not set(pair) <= _PARTICLES)
    for joined in ("".join(tokens), tokens[0] + tokens[-1], tokens[0][0] + tokens[-1]):
        if len(tokens) > 1 and len(joined) >= _SHORTEST_JOINED:
            yield _Entry((joined,), "PERSON", careful=joined in _ALSO_WORDS)
    for part in tokens:
        if len(part) >= _SHORTEST_PART and part not in _PARTICLES:
            yield _Entry((part,), "PERSON", careful=part in _ALSO_WORDS or len(part) < _SHORTEST_LOWER)
    if len(tokens) == 1 and len(tokens[0]) < _SHORTEST_PART:
        yield _Entry(tokens, "PERSON", careful=True)


def _end(flat: str, at: int, tokens: tuple[str, ...]) -> int | None:
    """Where the run of tokens ends whose first ended at `at`."""
    for wanted in tokens[1:]:
        gap = _GAP.match(flat, at)
        token = _TOKEN.match(flat, gap.end() if gap else at)
        if token is None or token[0] != wanted:
            return None
        at = token.end()
    return at


def _written_as_name(text: str, start: int, end: int) -> bool:
    """A capital and then small letters, and no capital that its place in the sentence asks for."""
    word = text[start:end]
    if word[1:] != word[1:].lower():
        return False
    if plain(word) not in _ALSO_WORDS:
        return True
    return not _SENTENCE_START.search(text, max(0, start - 4), start) and not _NUMBER_NEXT.match(text, end)


def _unspaced_forms(name: str) -> Iterable[str]:
    joined = "".join(name.split())
    yield joined
    if len(joined) == 3:  # family name and two characters of a given name, by which people are called
        yield joined[1:]


def _tail(name: str) -> Iterable[str]:
    digits = "".join(re.findall("[0-9]", name))
    if len(digits) >= _SHORTEST_NUMBER and not _LETTERS.search(name):
        yield digits[-_TAIL:]
