"""A text without what is personal in it, and where that was."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from privacy.applying import Masker, Pseudonyms
from privacy.budget import Budget, Exhausted
from privacy.detector import find, is_clean
from privacy.json_text import is_document
from privacy.kind import KINDS, WHOLE
from privacy.known import Known
from privacy.policy import DEFAULT_POLICY, Operator, Policy
from privacy.span import Span, united

_NOBODY = Known()
_PASSES = 3
_SPAN_COST = 18  # units that it takes to put one placeholder


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
    also: Collection[Span] = (),
    pseudonyms: Pseudonyms | None = None,
) -> Masked:
    """`text` with everything personal replaced as `policy` says.

    `known` are names and handles to find besides; compile them once (`Known.compile`) where many texts share them.
    `also` are spans that somebody else found (a model), in characters of `text`.
    `pseudonyms` is the subject's own mapping, kept from text to text; it holds keyed digests and is added to.
    A text that cannot be read within its budget, or that stays personal, becomes one `<MASKED>`. Never raises for a text.
    """
    names = known if isinstance(known, Known) else Known.compile(known) if known else _NOBODY
    if not also and is_clean(text, names):
        return Masked(text, ())
    try:
        return _masked(text, policy, names, also, {} if pseudonyms is None else pseudonyms)
    except Exhausted:
        return _wholly(text)


def _masked(text: str, policy: Policy, names: Known, also: Iterable[Span], pseudonyms: Pseudonyms) -> Masked:
    """Mask, look again, mask what still shows as well; what shows then is masked with the whole text."""
    budget = Budget(len(text))
    spans = united([*find(text, names, policy, budget), *_masked_kinds(also, policy)])
    masker = Masker(policy, pseudonyms)
    shown: frozenset[Span] = frozenset()
    for _ in range(_PASSES):
        if not spans:
            return Masked(text, ())
        budget.spend(len(spans) * _SPAN_COST)
        applied = masker.apply(text, spans, shown)
        showing = [applied.back(span) for span in find(applied.text, names, policy, budget)]
        if not showing:
            return Masked(applied.text, applied.spans)
        spans = united([*spans, *showing])
        starts = [span.start for span in spans]
        shown = frozenset(spans[bisect_right(starts, span.start) - 1] for span in showing)
    return _wholly(text)


def _masked_kinds(spans: Iterable[Span], policy: Policy) -> Iterator[Span]:
    """Without what is no kind of ours (a place, a date) and what the policy keeps."""
    return (span for span in spans if span.kind in KINDS and policy.operator(span.kind) is not Operator.KEEP)


def _wholly(text: str) -> Masked:
    placeholder = f"<{WHOLE}>"
    return Masked(f'"{placeholder}"' if is_document(text) else placeholder, (Span(0, len(text), WHOLE),))
