"""What is personal in one text: every view of it read by every detector whose marks it bears."""

import re
from collections.abc import Callable, Iterable, Iterator

from privacy.budget import Budget
from privacy.cue import labels, loud, lower
from privacy.identifier import identifiers
from privacy.kind import PLACEHOLDER
from privacy.known import Known
from privacy.mailbox import PROVIDED, PROVIDER_HINTS, mailboxes
from privacy.network import accounts, machines
from privacy.number import numbers
from privacy.person import persons
from privacy.phone import phones
from privacy.place import births, homes
from privacy.policy import Operator, Policy
from privacy.reading import Reading
from privacy.secret import secrets
from privacy.span import Span, united
from privacy.view import View, fold, plain, views

Detector = Callable[[Reading], Iterable[Span]]

_SIGNS = re.compile(r"[0-9@%\\&]")
_TWO_CAPITALS = re.compile(  # or of a script that may have none; "Before I" is no name
    r"[A-Z\u00c0-\uffff][\w'’-]{0,40} (?!I\b)[A-Z\u00c0-\uffff]"
)
_DEVICE = re.compile(r"[A-Fa-f]{2}[:-][A-Fa-f]{2}[:-]")
_LOST_SIGNS = re.compile(r"(?:\w| )com\b|\bat ?[\])}]|\s(?:at|arroba)\s.{1,40}\s(?:dot|ponto|punto)\s", re.IGNORECASE)
_LOST_SIGN_MARKS = ("com", "COM", "at)", "at]", "at}", "at )", "at ]", " dot ", " ponto ", " punto ")
_WORD = re.compile(r"[^\W_]+")
_APART = {code: " " for code in range(128) if not chr(code).isalnum()}  # splits ASCII as _WORD does, and faster
_DIGIT = re.compile("[0-9]")
_WITH_DIGITS: tuple[Detector, ...] = (numbers, phones, identifiers, accounts, homes, births)
_ALWAYS: tuple[Detector, ...] = (mailboxes, machines, persons, secrets)
_CHARACTERS_FOR_A_UNIT = 4  # for the reading itself
_UNITS_FOR_A_SPAN = 2


def is_clean(text: str, known: Known) -> bool:
    """Whether a look at its words alone shows that nothing in `text` can be personal: most turns of a chat end here."""
    if not text.isascii():
        text = fold(text)
        if known.unspaced and known.unspaced.search(text):
            return False
    if _SIGNS.search(text) or _TWO_CAPITALS.search(text) or _is_marked(text):
        return False
    flat = plain(text)
    if any(hint in flat for hint in PROVIDER_HINTS) and PROVIDED.search(lower(text)):
        return False
    words = set(flat.translate(_APART).split() if flat.isascii() else _WORD.findall(flat))
    if not words.isdisjoint(loud()) or ((":" in text or "-" in text) and not words.isdisjoint(labels())):
        return False
    return words.isdisjoint(known.entries)


def _is_marked(text: str) -> bool:
    """Whether letters alone may be a device, a key, an address without its signs."""
    if ("-" in text or ":" in text) and (_DEVICE.search(text) or "-----BEGIN" in text):
        return True
    return any(mark in text for mark in _LOST_SIGN_MARKS) and _LOST_SIGNS.search(text) is not None


def is_clear(text: str, known: Known) -> bool:
    """Whether nothing personal can be in `text` besides the placeholders that it has."""
    return is_clean(_blanked(text), known)


def find(text: str, known: Known, policy: Policy, budget: Budget) -> list[Span]:
    """What `policy` masks in `text`, in order and none overlapping. Raises `Exhausted` on a text made to cost.

    Kinds that the policy keeps are dropped first, so that no long kept span hides a short masked one.
    """
    found: list[Span] = []
    for view in views(_blanked(text), budget):
        budget.spend(len(view.text) // _CHARACTERS_FOR_A_UNIT)
        seen = list(_read(Reading(view.text, budget, policy.regions, known)))
        budget.spend(len(seen) * _UNITS_FOR_A_SPAN)
        found += seen if view.starts is None else (_back(view, span) for span in seen)
    kept = {kind for kind, operator in policy.operators.items() if operator is Operator.KEEP}
    return united(span for span in found if span.kind not in kept)


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
