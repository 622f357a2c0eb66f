"""What only a person's talk with an agent has: requests, answers of one word, and what the agent did."""

import re
from collections.abc import Iterator, Sequence

from memory.terse.clause import Subject, telling
from memory.terse.ear import Ear
from memory.terse.refusal import participle, reach, refusal
from memory.terse.statement import Statement
from memory.terse.token import Token, tokens
from memory.terse.wording import wording
from memory.terse.words import OWN, Part
from memory.turn import Turn

_ASKING = re.compile(
    r"\W*(?:(?:hi|hey|hello|ok(?:ay)?|so|and|also|then|thanks)\W+){0,3}(?:(?:can|could|would|will) you(?: please| also| kindly)?|please) (?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TRANSIENT = re.compile(
    r"(?:don't|do not|never|tell|explain|help|show|say|repeat|clarify|describe|translate|summari[sz]e|rewrite|write|give|list|wait|hold|let|advise)\b",
    re.IGNORECASE,
)
_CALLING = re.compile(
    r"(?P<verb>call|contact|e-?mail|text|message|ring|phone|notify|inform|wake|remind|alert|ping|address) (?:me|us)\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"\W*(?P<word>yes|yeah|yep|yup|sure|please(?: do)?|of course|absolutely|certainly|correct|right|exactly|no|nope|nah)\b(?:[,. ]+(?:please|thanks|thank you|i do|i am|it is|that's right))?\W*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:\w+,? ){0,2}?(?:(?:shall|should|may|can|could) i|(?:do you want|would you like) me to)(?: also| now| just)? ",
    re.IGNORECASE,
)
_SAYS_NO = frozenset({"no", "nope", "nah"})
_DID = re.compile(
    r"\bI(?:'ve| have)?(?: just| now| already| also| successfully)? (?P<en>booked|cancell?ed|sent|created|updated|scheduled|rescheduled|refunded|ordered"
    r"|reserved|changed|opened|submitted|filed|added|removed|issued|processed|escalated|transferred|upgraded|emailed|registered|activated"
    r"|deactivated|reset|applied|charged|credited|shipped)\b.*"
    r"|\b(?:reservei|agendei|cancelei|enviei|atualizei|criei|he (?:reservado|cancelado|enviado|actualizado|creado|programado))\b.*"
    r"|已(?:经|經)?(?:为|為)?(?:您|你)?(?:预订|預訂|取消|发送|發送|更新|创建|創建|安排|退款).*",
    re.IGNORECASE | re.DOTALL,
)
_ANSWERED = 6  # words of the question that a yes or no confirms


def special(sentence: str, asked: str | None, turn: Turn, ear: Ear) -> Statement | None:
    """A bare yes or no to the agent's question, or a request to it."""
    return (
        _confirmation(sentence, asked, turn, ear)
        or refusal(sentence, turn, ear)
        or reach(sentence)
        or _request(sentence, turn, ear)
    )


def _request(sentence: str, turn: Turn, ear: Ear) -> Statement | None:
    """What the person asks the agent to do; None for what is over with the answer, such as an explanation."""
    asking = _ASKING.fullmatch(sentence)
    if asking is None or _TRANSIENT.match(asking["what"]):
        return None
    words = [word for word in tokens(asking["what"], turn.said_at, ear.common) if word.low not in OWN]
    if called := _CALLING.match(asking["what"]):
        deed = f"be {participle(called['verb'].lower())}"
        words[0] = Token(deed, deed, Part.TELLS)  # "call me after ten" asks to be called
    if len(telling(words)) < 2:
        return None
    note = " ".join(wording(words, Subject.NAMED, ear.called)).replace(" ,", ",")
    days = next((word.days for word in words if word.days), None)
    return Statement(f"asks to {note}", sentence, days)


def _confirmation(sentence: str, asked: str | None, turn: Turn, ear: Ear) -> Statement | None:
    """The agent's question and the person's bare yes or no to it, which makes it the person's own word."""
    answer = _YES_OR_NO.fullmatch(sentence)
    if answer is None or asked is None:
        return None
    offered = _OFFER.match(asked)
    question = asked[offered.end() :] if offered else asked
    words = wording(tokens(question, turn.said_at, ear.common), Subject.NAMED, ear.called)[:_ANSWERED]
    if not words:
        return None
    said, agreed = " ".join(words).replace(" ,", ","), answer["word"].lower() not in _SAYS_NO
    if offered:
        return Statement(f"asks {'to' if agreed else 'not to'} {said}", asked)
    return Statement(f"{said}? {'yes' if agreed else 'no'}", asked)


def deeds(turn: Turn, spoken: Sequence[str], ear: Ear) -> Iterator[Statement]:
    """What an agent says that it did: its own acts, never a fact about the person."""
    for sentence in spoken:
        did = _DID.search(sentence)
        if did is None:
            continue
        if did["en"] is None:
            yield Statement(did[0].strip(" .。!！"), sentence)
            continue
        words: list[Token] = tokens(did[0], turn.said_at, ear.common)
        note = wording(words, Subject.SPEAKER, ear.called)
        if len(note) > 1:
            yield Statement(
                " ".join(note).replace(" ,", ","), sentence, next((word.days for word in words if word.days), None)
            )
