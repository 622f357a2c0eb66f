"""What an English turn states, as terse notes."""

import re
from collections.abc import Iterator, Sequence

from memory.sentences import is_question
from memory.stems import stem
from memory.terse import dialogue
from memory.terse.clause import Subject, clauses, subject_of, telling, worth
from memory.terse.ear import Ear, Speech
from memory.terse.statement import Statement
from memory.terse.token import Token, tokens
from memory.terse.wording import wording
from memory.terse.words import OWN, Part
from memory.turn import Turn
from memory.wordlist import listed

_ENOUGH = 0.23  # below this a clause costs more room than it tells
_ENOUGH_FOR_AN_AGENT = 0.15  # people tell an agent less that is beside the point
_SHORT = 5  # words of a clause that may come to a single one
_CONTEXT = 4  # words of the question that an answer keeps
_CAPTION = 5  # words of a picture's caption
_FILLER = re.compile(
    r"(?:take care|see (?:you|ya)|talk (?:to you )?(?:soon|later)|let me know|keep (?:it )?up|good luck|have (?:a )?(?:fun|great|good|nice)"
    r"|check (?:it|this|that|them) out|take a look|here'?s (?:a|the) (?:pic|photo)|no (?:worries|problem)|my pleasure|long time no"
    r"|catch (?:you|ya)|thanks|thank you|sounds? (?:good|great|like)|good to (?:see|hear)|great to|glad (?:to hear|you)|nice to"
    r"|hope (?:you|all)|guess what|you bet|for sure|catch up|take it easy|trust me|stay (?:safe|strong|positive)|keep (?:going|pushing)"
    r"|way to go|well done|me too|same here)\b",
    re.IGNORECASE,
)
_OF_ONESELF = re.compile(r"\b(?:i|my|we|our|us|me)\b", re.IGNORECASE)
_ADVICE = frozenset({"should", "could", "try", "might"})
# What is only about the chat itself, or only says when.
_OF_THE_CHAT = frozenset(
    listed(
        "chat chats chatting chatted talk back suggestion suggestions suggest advice advise recommendation tip tips question questions answer"
    )
    + listed(
        "answers info information reply message idea agree spoke topic topics conversation practical useful helpful confused enjoyable"
    )
)
_CAPTION_LEAD = re.compile(
    r"(?:an? |the )?(?:close ?up )?(?:of )?(?:an? )?(?:black and white )?(?:photo(?:graph(?:y)?)?|picture|image|screenshot)(?: of)? ?",
    re.IGNORECASE,
)
_SEEN_EVERYWHERE = frozenset(
    listed(
        """
    person people man men woman women holding sitting standing table front background top group posing wearing
    looking next side couple close view two three girl boy laying lying walking showing room floor wooden filled
    """
    )
)


def statements(speech: Speech, ear: Ear) -> Iterator[Statement]:
    """What the sentences of a turn state, and what its pictures show, in their order."""
    answering = speech.asked
    for sentence in speech.sentences:
        if speech.to_agent and (special := dialogue.special(sentence, answering, speech.turn, ear)):
            yield special
            answering = None
        elif not is_question(sentence) and (_OF_ONESELF.search(sentence) or not _FILLER.match(sentence)):
            for clause in clauses(tokens(sentence, speech.turn.said_at, ear.common)):
                words = _note(clause, speech, ear, first=answering is not None)
                if words:
                    yield _statement(words, clause, sentence, _context(answering, speech.turn, clause, ear), ear)
                    answering = None
    for caption in speech.captions:
        yield from _pictured(caption, speech.turn, ear)


def _note(clause: Sequence[Token], speech: Speech, ear: Ear, *, first: bool) -> list[str]:
    """The words of the clause's note; none when it is not worth one. `first`: it answers the open question."""
    subject, tells = subject_of(clause), telling(clause)
    if subject is Subject.HEARER and not any(
        word.low in _ADVICE or (speech.to_agent and word.low in OWN) for word in clause
    ):
        return []
    # One word says something as an answer, or of oneself to an agent: "I'm vegan".
    denied = subject is Subject.OTHERS and any(word.part is Part.NOT for word in clause)  # "she can't do stairs"
    brief = first or (speech.to_agent and (subject is Subject.SPEAKER or denied))
    if not tells or (len(tells) < 2 and not brief and not any(map(_stands_out, tells))):
        return []
    if (not first and _is_of_the_chat(clause, tells)) or _only_chats(clause):
        return []
    words = wording(clause, subject, ear.called, speech.hearer, spelled=speech.to_agent)
    if len(words) < 2 and not (brief and len(clause) < _SHORT):
        return []
    if denied and speech.to_agent:
        return words
    new = tells if speech.to_agent else ear.new_in(tells)
    value = worth(clause, subject, len(words), new=len(new), answers=speech.asked is not None)
    return words if value >= (_ENOUGH_FOR_AN_AGENT if speech.to_agent else _ENOUGH) else []


def _is_of_the_chat(clause: Sequence[Token], tells: Sequence[Token]) -> bool:
    """Only about the talk, or only a time; but "Saturday, not Friday" corrects one."""
    return all(word.days or word.low in _OF_THE_CHAT for word in tells) and not any(
        word.part is Part.NOT for word in clause
    )


def _only_chats(clause: Sequence[Token]) -> bool:
    """That one is back, or talks again next week; not even as an answer does it say something."""
    chats = [word for word in clause if word.low in _OF_THE_CHAT and word.part is not Part.SILENT]
    rest = [word for word in telling(clause) if word not in chats]
    return bool(chats) and all(word.days for word in rest) and not any(word.part is Part.NOT for word in clause)


def _stands_out(word: Token) -> bool:
    return word.days is not None or word.text[0].isdigit() or word.text[0].isupper()


def _statement(words: Sequence[str], clause: Sequence[Token], sentence: str, context: str, ear: Ear) -> Statement:
    about = {"he": ear.man, "she": ear.woman}.get(words[0].partition(" ")[0])  # "he is" is one word of a note
    ear.note(telling(clause))
    days = next((word.days for word in clause if word.days), None)
    continues = subject_of(clause) in {Subject.THING, Subject.OTHERS}
    return Statement(context + " ".join(words).replace(" ,", ","), sentence, days, about, continues)


def _context(question: str | None, turn: Turn, clause: Sequence[Token], ear: Ear) -> str:
    """The telling words of a question, as far as neither its answer nor the talk before has them."""
    if question is None:
        return ""
    mine = {stem(word.low) for word in clause}
    asked = ear.new_in(telling(tokens(question, turn.said_at, ear.common)))
    fresh = [word for word in asked if not (word.days or word.low in ear.called or stem(word.low) in mine)]
    if len(fresh) < 2:
        return _asked(question, turn, ear) if all(word.days for word in telling(clause)) else ""
    ear.note(fresh)
    return " ".join(word.text for word in fresh[:_CONTEXT]) + "? "


def _asked(question: str, turn: Turn, ear: Ear) -> str:
    """What a bare date answers: "leave?" for "When do you leave?"."""
    words = [
        word for word in wording(tokens(question, turn.said_at, ear.common), Subject.NAMED, ear.called) if word != ","
    ]
    return " ".join(words[:_CONTEXT]) + "? " if words else ""


def _pictured(caption: str, turn: Turn, ear: Ear) -> Iterator[Statement]:
    """What a shared picture shows, as far as the talk has not said it."""
    words = tokens(_CAPTION_LEAD.sub("", caption, count=1), turn.said_at, ear.common)
    shown = [word for word in ear.new_in(telling(words)) if word.low not in _SEEN_EVERYWHERE]
    if len(shown) > 1:
        ear.note(shown)
        yield Statement("photo " + " ".join(word.text for word in shown[:_CAPTION]), caption)
