"""Where JSON stands inside a text, so that masking never breaks it.

One pass over tokens with an explicit stack: linear, whatever the depth. Only arrays and objects that close count.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass

_REST = (
    r"|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z.])"
    r"|true\b|false\b|null\b|[\[\]{},:]|[ \t\r\n]++|."
)
_TOKEN = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+"' + _REST, re.DOTALL)
# The same in JSON that stands in a string of JSON, where every quote has a backslash.
_INNER_TOKEN = re.compile(
    r'\\"(?:[^"\\\x00-\x1f]++|\\\\(?:\\"|\\\\|[^"\\])|\\u[0-9A-Fa-f]{4}|\\/)*+\\"' + _REST,
    re.DOTALL,
)
_BRACKET = re.compile(r"[\[{]")
_ESCAPE_LETTERS = "nrtbf"
_BEGUN_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{0,3})?\Z")
_ESCAPE_LENGTH = LONGEST_BEGUN = (
    5  # without its backslash; with it, as far as it can have begun before a place inside it
)
_HEX = re.compile(r"[0-9A-Fa-f]+")
_UNICODE_ESCAPE = re.compile(r"u[0-9A-Fa-f]{4}")


@dataclass(frozen=True, slots=True)
class Layout:
    """`regions` are the outermost arrays and objects, `numbers` the bare numbers in them; both `[start, end)`, in order."""

    regions: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]

    def within(self, at: int) -> bool:
        return _around(self.regions, at) is not None

    def numbers_over(self, start: int, end: int) -> tuple[int, int] | None:
        """The bare number that `start` lies in, and the rest of those that follow it in a list up to `end`."""
        first, last = _around(self.numbers, start), _around(self.numbers, end - 1)
        return (first[0], last[1] if last else first[1]) if first else None


def _around(stretches: tuple[tuple[int, int], ...], at: int) -> tuple[int, int] | None:
    index = bisect_right(stretches, (at, 1 << 62)) - 1
    if index >= 0 and at < stretches[index][1]:
        return stretches[index]
    return None


def layout(text: str, *, inner: bool = False) -> Layout:
    """Where the JSON in `text` is, or the JSON within its strings. Text around and between it may be anything."""
    pattern = _INNER_TOKEN if inner else _TOKEN
    closed: list[tuple[int, int]] = []
    reader = _Reader()
    token = _next(text, 0, pattern, reader)
    while token:
        start = reader.take(token)
        if start is not None:
            while closed and closed[-1][0] >= start:
                closed.pop()
            closed.append((start, token.end()))
        token = _next(text, token.end(), pattern, reader)
    regions = tuple(closed)
    return Layout(regions, tuple(number for number in reader.numbers if _around(regions, number[0])))


def _next(text: str, at: int, pattern: re.Pattern[str], reader: "_Reader") -> re.Match[str] | None:
    """The next token; outside of brackets only one that opens counts, so that no quotation mark of prose begins a string."""
    if not reader.open:
        bracket = _BRACKET.search(text, at)
        if bracket is None:
            return None
        at = bracket.start()
    return pattern.match(text, at)


class _Reader:
    """The state between two tokens: which brackets are open and what may come next."""

    def __init__(self) -> None:
        self.open: list[tuple[int, str]] = []
        self.numbers: list[tuple[int, int]] = []
        self.expected = "value"

    def take(self, token: re.Match[str]) -> int | None:
        """The start of the array or object that `token` closes."""
        first = token[0][0] if token[0][:2] != '\\"' else '"'
        if first in " \t\r\n":
            return None
        if first in "]}":
            return self._close(first)
        if first in "[{" and (not self.open or self.expected in ("value", "first")):
            self.open.append((token.start(), first))
            self.expected = "first" if first == "[" else "first key"
        elif not self.open or not self._fits(first, token):
            self._give_up(token, first)
        return None

    def _close(self, bracket: str) -> int | None:
        if (
            self.open
            and self.open[-1][1] == "[{"["]}".index(bracket)]
            and self.expected in ("first", "first key", "comma")
        ):
            start = self.open.pop()[0]
            self.expected = "comma"
            return start
        self._forget()
        return None

    def _fits(self, first: str, token: re.Match[str]) -> bool:
        if first == ",":
            return self._move("comma", "value" if self.open[-1][1] == "[" else "key")
        if first == ":":
            return self._move("colon", "value")
        if first == '"' and len(token[0]) > 1 and self.expected in ("key", "first key"):
            self.expected = "colon"
            return True
        if self.expected in ("value", "first") and (len(token[0]) > 1 or first.isdigit()) and first not in "[{":
            if first not in '"tfn':
                self.numbers.append(token.span())
            self.expected = "comma"
            return True
        return False

    def _move(self, expected: str, following: str) -> bool:
        fits = self.expected == expected
        self.expected = following
        return fits

    def _give_up(self, token: re.Match[str], first: str) -> None:
        self._forget()
        if first in "[{":
            self.open.append((token.start(), first))
            self.expected = "first" if first == "[" else "first key"

    def _forget(self) -> None:
        self.open.clear()
        self.expected = "value"


def escape_remainder(text: str, start: int) -> int:
    """How many characters at `start` belong to an escape that began before it (`\\n`, `\\u0041`); 0 for none."""
    begun = _BEGUN_ESCAPE.search(text, max(0, start - LONGEST_BEGUN), start)
    if begun is None:
        return 0
    if begun[1]:
        rest = _ESCAPE_LENGTH - len(begun[1])
        return rest if _HEX.fullmatch(text, start, start + rest) else 0
    if text[start] in _ESCAPE_LETTERS:
        return 1
    return 5 if _UNICODE_ESCAPE.match(text, start) else 0


def is_document(text: str) -> bool:
    """Whether the whole of `text` is one JSON array, object or string."""
    stripped = text.strip()
    if stripped[:1] == '"':
        token = _TOKEN.match(stripped)
        return token is not None and token.end() == len(stripped) > 1
    return stripped[-1:] in ("]", "}") and layout(stripped).regions == ((0, len(stripped)),)
