"""Names and handles that somebody registered, found without any model: whole, in parts, turned round, glued by a sign.

Case and accents do not matter. A part that is also a word ("Will", "May") counts only where it is written like a name.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from privacy.span import Span
from privacy.view import fold, plain
from privacy.vocabulary import words

_TOKEN = re.compile(r"[^\W_]+")
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


@dataclass(slots=True)
class _Node:
    """After these tokens: what ends here, and what may follow. However many names share their beginning, one step each."""

    entries: list[_Entry] = field(default_factory=list)
    longer: dict[str, "_Node"] = field(default_factory=dict)

    def put(self, entry: _Entry) -> None:
        node = self
        for token in entry.tokens:
            node = node.longer.setdefault(token, _Node())
        if entry not in node.entries:
            node.entries.append(entry)


@dataclass(frozen=True, slots=True)
class Known:
    """Compiled names; make it once with `Known.compile` where many texts are searched for the same ones."""

    entries: Mapping[str, _Node] = field(default_factory=dict)
    unspaced: re.Pattern[str] | None = None
    tails: frozenset[str] = frozenset()

    @classmethod
    def compile(cls, names: Collection[str]) -> "Known":
        """`names` are names, e-mail addresses, phone numbers and ids as they were registered."""
        root = _Node()
        unspaced: set[str] = set()
        tails: set[str] = set()
        for name in map(fold, names):
            if _UNSPACED.search(name):
                unspaced.update(_unspaced_forms(name))
            tails.update(_tail(name))
            for entry in _entries(name):
                root.put(entry)
        return cls(
            root.longer,
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
        words = _TOKEN.findall(flat)
        distinct = set(words)
        begun = {word: self.entries[word] for word in distinct if word in self.entries}
        begun |= {word: node for word in distinct if word[-1] in _DIGITS and (node := self._numbered(word)) is not None}
        if not begun:
            return
        places = [index for index, word in enumerate(words) if word in begun and _may_be(begun[word], words, index)]
        spans = [token.span() for token in _TOKEN.finditer(flat)] if places else []
        for index in places:
            if span := _longest(begun[words[index]], text, flat, spans, index):
                yield span

    def _numbered(self, word: str) -> _Node | None:
        """What begins with this token, which ends with digits: glued to a name ("maria1990") they count for nothing."""
        bare = word.rstrip(_DIGITS)
        return self.entries.get(word) or (self.entries.get(bare) if len(bare) >= _SHORTEST_LOWER else None)

    def is_number(self, digits: str) -> bool:
        """Whether these digits are a registered phone number, with or without its country."""
        return len(digits) >= _SHORTEST_NUMBER and digits[-_TAIL:] in self.tails


def reads_as_name(text: str, start: int, end: int) -> bool:
    """Whether a word that is a registered name stands for it here, and for nothing else. `text` is folded."""
    word = plain(text[start:end])
    careful = word in _ALSO_WORDS or (len(word) < _SHORTEST_LOWER and not _UNSPACED.match(text, start))
    return not careful or _written_as_name(text, start, end)


def _may_be(node: _Node, words: Sequence[str], index: int) -> bool:
    """Whether this token alone is known, or the next one goes on as a known one does."""
    return bool(node.entries) or (index + 1 < len(words) and words[index + 1] in node.longer)


def _longest(node: _Node, text: str, flat: str, spans: Sequence[tuple[int, int]], index: int) -> Span | None:
    """The longest run of known tokens that begins with this one, which is `node`'s."""
    start, end = spans[index]
    found = None
    while True:
        for entry in node.entries:
            if not entry.careful or _written_as_name(text, start, end):
                found = Span(start, end, entry.kind)
                break
        index += 1
        if not node.longer or index == len(spans):
            return found
        following = node.longer.get(flat[spans[index][0] : spans[index][1]])
        if following is None or not _GAP.fullmatch(flat, end, spans[index][0]):
            return found
        node, end = following, spans[index][1]


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


def _written_as_name(text: str, start: int, end: int) -> bool:
    """A capital and then small letters, and no capital that its place in the sentence asks for."""
    word = text[start:end]
    if not word[0].isupper() or word[1:] != word[1:].lower():
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
