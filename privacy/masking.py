"""A text without what is personal in it, and where that was."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from privacy.applying import Masker, Pseudonyms
from privacy.budget import Budget, Exhausted
from privacy.detector import find, is_clean, is_clear
from privacy.json_text import is_document
from privacy.kind import KINDS, PLACEHOLDER, WHOLE
from privacy.known import Known
from privacy.policy import DEFAULT_POLICY, Operator, Policy
from privacy.span import Span, united

_NOBODY = Known()
_PASSES = 3
_SPAN_COST = 5  # units that it takes to put one placeholder


@dataclass(frozen=True, slots=True)
class Masked:
    """`text` as it may be stored; `spans` are what was personal, in characters of the original, in order."""

    text: str
    spans: tuple[Span, ...]


def mask(
    text: str,
    policy: Policy = DEFAULT_POLICY,
    known: Collection[str] | Known = (),
    *,
    extra: Sequence[Span] = (),
    pseudonyms: Pseudonyms | None = None,
) -> Masked:
    """`text` with everything personal replaced as `policy` says.

    `known` are names and handles to find besides; compile them once (`Known.compile`) where many texts share them.
    `extra` are spans that somebody else found (a model), in characters of `text`: what reaches beyond it is cut, what
    lies within a placeholder or is of a kind that is nobody's own (a place, a date) is left.
    `pseudonyms` is the subject's own mapping, kept from text to text; it holds keyed digests and is added to.
    A text that cannot be read within its budget, or that stays personal, becomes one `<MASKED>`. Never raises for a text.
    """
    names = known if isinstance(known, Known) else Known.compile(known) if known else _NOBODY
    if not extra and is_clean(text, names):
        return Masked(text, ())
    try:
        return _masked(text, policy, names, extra, {} if pseudonyms is None else pseudonyms)
    except Exhausted:
        return _wholly(text)


def _masked(text: str, policy: Policy, names: Known, extra: Iterable[Span], pseudonyms: Pseudonyms) -> Masked:
    """Mask, look again, mask what still shows as well; what shows then is masked with the whole text."""
    budget = Budget(len(text))
    spans = united([*find(text, names, policy, budget), *_within(text, extra, policy)])
    masker = Masker(policy, pseudonyms)
    shown: frozenset[Span] = frozenset()
    for _ in range(_PASSES):
        if not spans:
            return Masked(text, ())
        budget.spend(len(spans) * _SPAN_COST)
        applied = masker.apply(text, spans, shown)
        showing = [applied.back(span) for span in _seen_again(applied.text, names, policy, budget)]
        if not showing:
            return Masked(applied.text, applied.spans)
        spans = united([*spans, *showing])
        starts = [span.start for span in spans]
        shown = frozenset(spans[bisect_right(starts, span.start) - 1] for span in showing)
    return _wholly(text)


def _within(text: str, spans: Iterable[Span], policy: Policy) -> Iterator[Span]:
    """The part of each inside `text`, without what is no kind of ours, what the policy keeps, and what is masked already."""
    placeholders = [placeholder.span() for placeholder in PLACEHOLDER.finditer(text)] if "<" in text else []
    for span in spans:
        start, end, kind = max(span.start, 0), min(span.end, len(text)), span.kind
        masked = bisect_right(placeholders, (start, len(text))) - 1
        if start >= end or (masked >= 0 and end <= placeholders[masked][1]):
            continue
        if kind in KINDS and policy.operator(kind) is not Operator.KEEP:
            yield Span(start, end, kind)


def _seen_again(text: str, names: Known, policy: Policy, budget: Budget) -> list[Span]:
    """What a second look finds; most texts bear no mark of anything once they are masked."""
    return [] if is_clear(text, names) else find(text, names, policy, budget)


def blotted(text: str) -> str:
    """What stands for a text that nobody can look through: one placeholder, JSON for JSON."""
    return _wholly(text).text


def _wholly(text: str) -> Masked:
    placeholder = f"<{WHOLE}>"
    return Masked(f'"{placeholder}"' if is_document(text) else placeholder, (Span(0, len(text), WHOLE),))
