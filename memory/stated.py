"""Sentences that tell how work is done: what an assistant asks for, what a person corrects, and rules that are stated."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memory import sentences
from memory.impersonal import Own
from memory.turn import Role, Turn

_LONGEST_ASK, _LONGEST_RULE = 140, 240  # characters
_LEAST_WORDS = 3

_REQUESTS = re.compile(
    r"\b(?:please|let me know|i(?:'ll|’ll| will| would)? need (?:your|the|to know|a|some)|(?:could|can|would|may|might) (?:you|i|we)\b"
    r"|(?:provide|tell|give|send|share|confirm)(?: me| us)? (?:your|the|with)"
    r"|por favor|preciso d|necesito (?:su|tu|el|la)|bitte|ich brauche|veuillez|s'il vous plaît|j'ai besoin|per favore|mi serve)",
    re.IGNORECASE,
)
# What every assistant says, and no procedure needs.
_COURTESY = re.compile(
    r"\b(?:anything else|something else|any other|else (?:i|we) can|(?:how|what) (?:can|may|could) (?:i|we) (?:help|assist|do)|how are you"
    r"|help you|assist you|thank|you'?re welcome|have a (?:nice|great|good)|good ?bye|don'?t understand|able to help|mais alguma coisa|algo más"
    r"|sonst noch|autre chose|(?:one|a) moment|hold on|please wait|bear with)\b|^(?:hello|hi|hey|ok(?:ay)?|great|right|sure)\W*$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|great|right|sure|alright|all right|thanks?(?: you)?|perfect|unfortunately|however|also|and|so|but|well|yes|no|nope"
    r"|certainly|of course|i(?:'m| am) (?:very )?sorry|sorry|actually|please note(?: that)?|note that|that'?s (?:not right|wrong|not correct))\b"
    r"[\s,.:;!-]*)+",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*")
_CLAUSE = re.compile(r"[,;:–—]\s+")
_OF_ONE = re.compile(r"\b(?:i|i'm|i’m|my|me|mine|you|your|yours|you're|you’re|he|she|his|her|their)\b", re.IGNORECASE)
_RULE = re.compile(
    r"\b(?:must(?: not| never| always| first| be)?|can ?not be|can(?:'t|’t) be|can only|may (?:only|not)|(?:is|are) (?:not |only |never )?allowed"
    r"|(?:is|are) only|only (?:after|if|when|once|be|with)|needs? to be|has to be|have to be|(?:is|are) (?:always |never )?required"
    r"|requires?|(?:always|never)\b.*\b(?:before|after|until|unless|without|when|if|first|once)"
    r"|deve(?:m)? ser|não pode|debe(?:n)? ser|no se puede|muss|müssen|darf nicht|doit|ne peut pas)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"^(?:that|this|it|they|there|those|these|we)\b", re.IGNORECASE
)  # at something that is not said again
_OF_WORK = re.compile(
    r"\b(?:before|after|first|then|until|unless|without|instead|once|only|always|never|every|cannot|can't|allowed|required|requires?|must|"
    r"antes|depois|sempre|nunca|después|siempre|vor|nach|immer|nie|avant|après|toujours)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^\W*(?:no|nope|wrong|actually|that(?:'s| is|’s) (?:not (?:right|correct|how)|wrong)|not (?:like that|so|quite|yet)|you (?:forgot|missed|skipped)"
    r"|stop|wait|não|errado|nein|falsch|non)\b",
    re.IGNORECASE,
)
_BIDS = re.compile(
    r"\b(?:(?:you|we) (?:must|should|have to|need to|can(?:'t|not|’t)|always|never|first|only|shouldn'?t|mustn'?t)"
    r"|(?:always|never|first|instead|before|after)\b.*\b(?:use|call|run|check|ask|open|refresh|post|send|set|close|create|look|verify|confirm|wait)"
    r"|(?:use|call|run|check|refresh|post|verify|confirm)\b.*\b(?:first|before|after|instead|always|then))\b",
    re.IGNORECASE,
)
_ITSELF = re.compile(
    r"\b(?:approv\w+|proposal|reviewer|ignore (?:all|any|previous|the)|instructions?)\b", re.IGNORECASE
)


def asked(turn: Turn, own: Own) -> Iterator[str]:
    """What an assistant's turn asks for, in its own words without whoever it asks."""
    for sentence in _sentences(turn.text):
        if _COURTESY.search(sentence) or not (sentences.is_question(sentence) or _REQUESTS.search(sentence)):
            continue
        plain = _plainest(sentence, own)
        if plain:
            yield plain


def corrections(turns: Sequence[Turn], own: Own) -> Iterator[str]:
    """What a person said about how it is to be done, when it was done otherwise."""
    for before, turn in pairwise(turns):
        if turn.role is not Role.USER or before.role is Role.USER or turn.conversation != before.conversation:
            continue
        said = list(_sentences(turn.text))
        if said and _CORRECTS.search(said[0]):
            for sentence in said:
                plain = _LEAD.sub("", sentence)
                if _BIDS.search(plain) and _OF_WORK.search(plain) and _holds(plain, own):
                    yield _capital(plain)


def rules(turn: Turn, own: Own) -> Iterator[str]:
    """What a turn states of how things have to be, for anybody."""
    for sentence in _sentences(turn.text):
        plain = _LEAD.sub("", sentence)
        says = _RULE.search(plain) and not _OF_ONE.search(plain) and not _POINTS.match(plain)
        if says and not sentences.is_question(plain) and _holds(plain, own):
            yield _capital(plain)


def _sentences(text: str) -> Iterator[str]:
    for sentence in sentences.split(text[:8_000]):
        bare = _BULLET.sub("", sentence).strip(" *_")
        if bare:
            yield bare


def _plainest(sentence: str, own: Own) -> str | None:
    """The sentence, or the part of it that holds nothing of anybody's: "Alright, the Ritz is free, can I book it?"."""
    bare = _LEAD.sub("", sentence)
    if _fits(bare, own):
        return _capital(bare)
    parts = [part.strip() for part in _CLAUSE.split(bare)]
    for first in range(1, len(parts)):
        rest = ", ".join(parts[first:])
        if _fits(rest, own) and (sentences.is_question(rest) or _REQUESTS.search(rest)):
            return _capital(rest)
    return None


def _fits(text: str, own: Own) -> bool:
    return len(text) <= _LONGEST_ASK and len(text.split()) >= _LEAST_WORDS and own.free(text)


def _holds(text: str, own: Own) -> bool:
    fits = len(text) <= _LONGEST_RULE and len(text.split()) > _LEAST_WORDS
    return fits and own.free(text) and not _ITSELF.search(text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
