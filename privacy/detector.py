"""What is personal in one text: every view of it read by every detector whose marks it bears."""

import re
from collections.abc import Callable, Iterable, Iterator

from privacy.budget import Budget
from privacy.cue import announces, labels, loud, lower
from privacy.identifier import identifiers
from privacy.kind import PLACEHOLDER
from privacy.known import Known, plain
from privacy.mailbox import mailboxes
from privacy.network import accounts, machines
from privacy.number import numbers
from privacy.person import persons
from privacy.phone import phones
from privacy.place import births, homes
from privacy.policy import Operator, Policy
from privacy.reading import Reading
from privacy.secret import secrets
from privacy.span import Span, united
from privacy.view import View, fold, views

Detector = Callable[[Reading], Iterable[Span]]

_MARKS = re.compile(
    r"[0-9@%\\&]|[A-Z][\w'’-]* [A-Z]|[A-Fa-f]{2}[:-][A-Fa-f]{2}[:-]|[A-Fa-f]{4}\.[A-Fa-f]{4}\.|-----BEGIN|\bat ?[\])}]|\wcom\b| com\b|\s(?:at|arroba)\s.{1,40}\s(?:dot|ponto|punto)\s"
)
_APART = {code: " " for code in range(128) if not chr(code).isalnum()}
_DIGIT = re.compile("[0-9]")
_WITH_DIGITS: tuple[Detector, ...] = (numbers, phones, identifiers, accounts, homes, births)
_ALWAYS: tuple[Detector, ...] = (mailboxes, machines, persons, secrets)
_CHARACTERS_FOR_A_UNIT = 8  # for the reading itself


def is_clean(text: str, known: Known) -> bool:
    """Whether a look at its words alone shows that nothing in `text` can be personal: most turns of a chat end here."""
    if not text.isascii():
        text = fold(text)
        if announces(text) or (known.unspaced and known.unspaced.search(text)):
            return False
    if _MARKS.search(text):
        return False
    words = set(lower(text).translate(_APART).split())
    if not words.isdisjoint(loud()) or (":" in text and not words.isdisjoint(labels())):
        return False
    return words.isdisjoint(known.entries) if text.isascii() else _unknown(text, known)


def _unknown(text: str, known: Known) -> bool:
    return not known.entries or set(plain(text).translate(_APART).split()).isdisjoint(known.entries)


def find(text: str, known: Known, policy: Policy, budget: Budget) -> list[Span]:
    """What `policy` masks in `text`, in order and none overlapping. Raises `Exhausted` on a text made to cost.

    Kinds that the policy keeps are dropped first, so that no long kept span hides a short masked one.
    """
    found: list[Span] = []
    for view in views(_blanked(text), budget):
        budget.spend(len(view.text) // _CHARACTERS_FOR_A_UNIT)
        found += (_back(view, span) for span in _read(Reading(view.text, budget, policy.regions, known)))
    return united(span for span in found if policy.operator(span.kind) is not Operator.KEEP)


def _blanked(text: str) -> str:
    """Placeholders say nothing: not that they are personal, and not what the number beside them is."""
    return PLACEHOLDER.sub(lambda placeholder: "<" * len(placeholder[0]), text) if "<" in text else text


def _read(reading: Reading) -> Iterator[Span]:
    detectors = _WITH_DIGITS + _ALWAYS if _DIGIT.search(reading.text) else _ALWAYS
    for detector in detectors:
        yield from detector(reading)
    yield from reading.known.find(reading.text)


def _back(view: View, span: Span) -> Span:
    return Span(*view.origin(span.start, span.end), span.kind)
