"""What a person asks an agent not to do, and how the person is to be reached."""

import re

from memory.terse.clause import Subject
from memory.terse.ear import Ear
from memory.terse.statement import Statement
from memory.terse.token import Token, tokens
from memory.terse.wording import wording
from memory.terse.words import OWN, Part
from memory.turn import Turn
from memory.wordlist import listed

_REFUSING = re.compile(
    r"\W*(?:(?:hi|hey|hello|ok(?:ay)?|so|and|also|but|then|thanks)\W+){0,3}"
    r"(?P<polite>(?:(?:can|could|would|will) you(?: please| kindly)?|please)[ ,]+)?"
    r"(?:(?P<no>do not|don't|never|not)(?: (?:to|ever))? (?P<verb>[a-z]{2,20})\b(?P<rest>.{0,300})|no (?P<unwanted>.{2,200}))",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_ONESELF = re.compile(r"\b(?:me|us|my|our)\b", re.IGNORECASE)
_ASKS_NOTHING = frozenset(
    listed("forget worry mind get know think be do have understand like want see remember feel need care bother")
)
_WHAT_TO_FORGET = re.compile(r"\s(?!that\b|i\b|to\b)\w", re.IGNORECASE)
_ME = re.compile(r"\s(?:me|us)\b", re.IGNORECASE)
_PARTICIPLES = {
    "send": "sent", "tell": "told", "ring": "rung", "wake": "woken", "notify": "notified", "charge": "charged", "invite": "invited",
    "message": "messaged", "phone": "phoned", "ping": "pinged", "spam": "spammed", "give": "given", "show": "shown", "write": "written to",
    "schedule": "scheduled", "book": "booked", "advise": "advised", "disturb": "disturbed",
}  # fmt: skip
_REACHED = re.compile(
    r"\W*(?:(?:so|and|also|ok(?:ay)?|please|sure|yes)\W+){0,2}(?:you (?:can |may |could )?(?:always |best )?)?"
    r"(?P<verb>reach|contact|call|phone|text|email|e-mail|message|find|write to) me (?P<where>(?:at|on|via|under|by|through) .{3,200})",
    re.IGNORECASE | re.DOTALL,
)
_ADDRESS = re.compile(r"<[A-Z][A-Z_0-9]*|\S@\S|\d[\d .-]{5,}")
_FOUND = {
    "reach": "reached",
    "call": "called",
    "text": "texted",
    "find": "found",
    "write to": "written to",
    "phone": "phoned",
}


def refusal(sentence: str, turn: Turn, ear: Ear) -> Statement | None:
    """What the agent is asked not to do: "please don't call me" asks not to be called."""
    refused = _REFUSING.fullmatch(sentence.replace("’", "'"))
    if refused is None or not _asks_for_something(refused):
        return None
    if refused["unwanted"]:
        return _asked("for", _noted(f"no {refused['unwanted']}", turn, ear), sentence, ear)
    verb, rest = refused["verb"].lower(), refused["rest"]
    deed = verb
    if whom := _ME.match(rest):
        deed, rest = f"be {participle(verb)}", rest[whom.end() :]
    words = [Token(deed, deed, Part.TELLS), *_noted(rest, turn, ear)]
    return _asked("never to" if refused["no"].lower() == "never" else "not to", words, sentence, ear)


def reach(sentence: str) -> Statement | None:
    """An address or a number at which the person wants to be found."""
    found = _REACHED.fullmatch(sentence)
    if found is None or not _ADDRESS.search(found["where"]):
        return None
    verb = found["verb"].lower()
    return Statement(f"can be {_FOUND.get(verb) or participle(verb)} {found['where'].rstrip(' .!')}", sentence)


def participle(verb: str) -> str:
    return _PARTICIPLES.get(verb) or (f"{verb}d" if verb.endswith("e") else f"{verb}ed")


def _asks_for_something(refused: re.Match[str]) -> bool:
    """Whether it is about the person, or at least polite; "don't worry" and "no problem" ask for nothing."""
    if refused["polite"]:
        verb = (refused["verb"] or "").lower()
        return verb not in {"worry", "mind"} and (
            verb != "forget" or _WHAT_TO_FORGET.match(refused["rest"]) is not None
        )
    if refused["verb"] is None or refused["no"].lower() == "not" or refused["verb"].lower() in _ASKS_NOTHING:
        return False
    return _ABOUT_ONESELF.search(refused["rest"]) is not None


def _noted(text: str, turn: Turn, ear: Ear) -> list[Token]:
    return [word for word in tokens(text, turn.said_at, ear.common) if word.low not in OWN]


def _asked(how: str, words: list[Token], sentence: str, ear: Ear) -> Statement | None:
    note = " ".join(wording(words, Subject.NAMED, ear.called)).replace(" ,", ",")
    days = next((word.days for word in words if word.days), None)
    return Statement(f"asks {how} {note}", sentence, days) if note and note != "no" else None
