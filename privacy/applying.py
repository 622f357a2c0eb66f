"""Putting placeholders where personal data was: presidio-anonymizer's operators make them, each of exactly one value.

Its engine is left out: it looks for overlaps that cannot be here, and copies the whole text for each value.
"""

import hmac
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, MutableMapping
from dataclasses import dataclass
from functools import partial

from presidio_anonymizer.operators import Custom, Replace

from privacy.json_text import LONGEST_BEGUN, Layout, escape_remainder, layout
from privacy.policy import Operator, Policy
from privacy.span import Span
from privacy.view import fold, plain

_SHOWN = 4  # characters that `mask` leaves
_SHORTEST_SHOWN = 9  # the last four would tell a shorter value
_INDENTATION = 200  # characters before a number in a list written line by line
_INNER = re.compile(r'\\"|"[\[{]')
_NO_JSON = Layout((), ())
_REPLACE, _CUSTOM = Replace(), Custom()

Pseudonyms = MutableMapping[str, str]


@dataclass(frozen=True, slots=True)
class Applied:
    """`spans[i]` of the original stands at `places[i]` of `text`."""

    text: str
    spans: tuple[Span, ...]
    places: tuple[tuple[int, int], ...]

    def back(self, span: Span) -> Span:
        """A stretch of the masked text as one of the original; what touches a placeholder takes in all it stands for."""
        return Span(self._origin(span.start)[0], self._origin(span.end - 1)[1], span.kind)

    def _origin(self, at: int) -> tuple[int, int]:
        index = bisect_right(self.places, (at, 1 << 62)) - 1
        if index < 0:
            return at, at + 1
        if at < self.places[index][1]:
            return self.spans[index].start, self.spans[index].end
        origin = at - self.places[index][1] + self.spans[index].end
        return origin, origin + 1


@dataclass(frozen=True, slots=True)
class _Target:
    """A span as it will be replaced: `quote` goes around what stands for a bare number, `plainly` without its operator."""

    span: Span
    quote: str
    plainly: bool


class Masker:
    """Applies one policy; `pseudonyms` maps keyed digests to the placeholders given so far, and grows."""

    def __init__(self, policy: Policy, pseudonyms: Pseudonyms) -> None:
        self._policy = policy
        self._pseudonyms = pseudonyms
        self._last: dict[str, int] = {}  # the highest number given so far, by kind
        self._substitutes: dict[Operator, Callable[[str, str], str]] = {
            Operator.MASK: _stars,
            Operator.HASH: self._hashed,
            Operator.PSEUDONYM: self._pseudonym,
        }

    def apply(self, text: str, spans: Iterable[Span], plainly: Collection[Span] = ()) -> Applied:
        """`text` with every span replaced; those in `plainly` by the bare name of their kind."""
        targets = list(_targets(text, spans, plainly))
        pieces: list[str] = []
        places: list[tuple[int, int]] = []
        done = length = 0
        for target in targets:
            start, end, _ = target.span
            stand_in = self._stand_in(target, text[start:end])
            pieces += (text[done:start], stand_in)
            length += start - done
            places.append((length, length + len(stand_in)))
            length, done = places[-1][1], end
        return Applied("".join([*pieces, text[done:]]), tuple(target.span for target in targets), tuple(places))

    def _stand_in(self, target: _Target, value: str) -> str:
        kind, quote = target.span.kind, target.quote
        operator = Operator.REPLACE if target.plainly else self._policy.operator(kind)
        if operator is Operator.REPLACE:
            return _REPLACE.operate(value, {"new_value": f"{quote}<{kind}>{quote}"})
        return f"{quote}{_CUSTOM.operate(value, {'lambda': partial(self._substitutes[operator], kind)})}{quote}"

    def _hashed(self, kind: str, value: str) -> str:
        return f"<{kind}:{self._digest(kind, value)}>"

    def _pseudonym(self, kind: str, value: str) -> str:
        digest = self._digest(kind, value)
        if digest not in self._pseudonyms:
            self._last[kind] = number = 1 + (self._last.get(kind) or _highest(kind, self._pseudonyms.values()))
            self._pseudonyms[digest] = f"<{kind}_{number}>"
        return self._pseudonyms[digest]

    def _digest(self, kind: str, value: str) -> str:
        """Sixteen letters of a keyed hash, no digits: a placeholder must look like nothing personal."""
        same = plain(fold(value))
        if kind != "EMAIL_ADDRESS":
            same = "".join(filter(str.isalnum, same))
        digest = hmac.digest(self._policy.key, f"{kind}\0{same}".encode("utf-8", "surrogatepass"), "sha256")
        return digest[:8].hex().translate(_TO_LETTERS)


def _highest(kind: str, placeholders: Iterable[str]) -> int:
    """The last number of a kind, so that none is given twice even where some were taken out."""
    before = f"<{kind}_"
    return max((int(given[len(before) : -1]) for given in placeholders if given.startswith(before)), default=0)


_TO_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def _stars(_: str, value: str) -> str:
    shown = _SHOWN if len(value) >= _SHORTEST_SHOWN else 0
    return "*" * (len(value) - shown) + value[len(value) - shown :]


def _targets(text: str, spans: Iterable[Span], plainly: Collection[Span]) -> Iterable[_Target]:
    """The spans, moved where they would break JSON: behind an escape's letters, out to the ends of a bare number."""
    spans = list(spans)
    around = layout(text) if any(_precarious(text, span.start) for span in spans) else _NO_JSON
    inside = layout(text, inner=True) if around.regions and _INNER.search(text) else _NO_JSON
    done = 0
    for span in spans:
        start, end, quote = span.start, span.end, ""
        if around.within(start):
            start += escape_remainder(text, start)
            if number := around.numbers_over(start, end):
                start, end, quote = *number, '"'
            elif number := inside.numbers_over(start, end):
                start, end, quote = *number, '\\"'
        if max(start, done) < end:
            done = end
            yield _Target(Span(start, end, span.kind), quote, span in plainly)


def _precarious(text: str, start: int) -> bool:
    """Whether a bare number of JSON or the rest of an escape may begin here."""
    before = text[max(0, start - _INDENTATION) : start].removesuffix("-").rstrip()
    return "\\" in before[-LONGEST_BEGUN:] or (text[start].isdecimal() and before[-1:] in ("[", ",", ":"))
