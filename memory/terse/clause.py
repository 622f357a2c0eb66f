"""An English sentence in clauses, and what a clause is worth keeping for."""

from collections.abc import Sequence
from enum import Enum

from memory.terse.token import Token
from memory.terse.words import COUNTED, FIRST, HEADS, JOINTS, PAST, PRONOUNS, SECOND, THING, THIRD, YOURS, Part

_BREAKS = frozenset(";:()…–—-[]{}|")


class Subject(Enum):
    """Whom a clause speaks of."""

    SPEAKER = "speaker"
    HEARER = "hearer"
    OTHERS = "others"
    THING = "thing"
    NAMED = "named"


# Measured on chats: what people say of themselves is asked for later, what they say to please the hearer is not.
_SUBJECT_WORTH = {
    Subject.SPEAKER: 0.8,
    Subject.HEARER: 0.3,
    Subject.OTHERS: -0.2,
    Subject.THING: -0.5,
    Subject.NAMED: 0.0,
}
_PAD = 2  # so that a clause of one rare word does not outweigh a whole sentence


def clauses(words: Sequence[Token]) -> list[list[Token]]:
    """Cut at marks, and before a pronoun that begins anew; commas of a list stay inside their clause."""
    found: list[list[Token]] = [[]]
    for place, word in enumerate(words):
        if word.text == ":" and _is_field(found[-1]):
            continue
        if word.part is Part.MARK and (word.text in _BREAKS or _begins_anew(words, place + 1)):
            found.append([])
        elif word.low in JOINTS and place + 1 < len(words) and words[place + 1].low in HEADS:
            if word.low == "and" and _is_company(found[-1]):
                found[-1].append(word)
            else:
                found.append([])
        else:
            found[-1].append(word)
    return _with_their_dates([clause for clause in found if clause])


def _is_field(clause: Sequence[Token]) -> bool:
    """The name of what follows: "Budget" in "Budget: 900 euros"."""
    return len(clause) < 4 and bool(telling(clause)) and all(word.part in {Part.TELLS, Part.VAGUE} for word in clause)


def _is_company(clause: Sequence[Token]) -> bool:
    """Whom one did it with, no clause of its own: "my wife" in "my wife and I went"."""
    return (
        0 < len(clause) < 4
        and all(word.part in {Part.SILENT, Part.TELLS} for word in clause)
        and len(telling(clause)) == 1
    )


def _with_their_dates(found: Sequence[list[Token]]) -> list[list[Token]]:
    """A clause that only says when ("Last Sunday was great -") belongs to the next one, or at the end to the one before."""
    joined: list[list[Token]] = []
    waiting: list[Token] = []
    for clause in found:
        if _only_says_when(clause):
            waiting += [word for word in clause if word.days]
        else:
            joined.append(waiting + clause)
            waiting = []
    if not joined:
        return list(found)
    joined[-1] += waiting
    return joined


def _only_says_when(clause: Sequence[Token]) -> bool:
    tells = telling(clause)
    return bool(tells) and all(word.days for word in tells)


def _begins_anew(words: Sequence[Token], place: int) -> bool:
    """Whether a new clause stands behind a comma: a pronoun, past the small words before it."""
    while place < len(words) and (
        words[place].low in JOINTS or (words[place].part is Part.SILENT and words[place].low not in PRONOUNS)
    ):
        place += 1
    return place >= len(words) or words[place].low in HEADS


def subject_of(clause: Sequence[Token]) -> Subject:
    """Whom the clause speaks of: its first pronoun before its first telling word, else what that word names."""
    for word in clause:
        if word.low in FIRST or word.low in {"my", "our"}:
            return Subject.SPEAKER
        if word.low in SECOND or word.low == "your":
            return Subject.HEARER
        if word.low in THIRD:
            return Subject.OTHERS
        if word.low in THING:
            return Subject.THING
        if word.part in {Part.TELLS, Part.LIGHT, Part.VAGUE}:
            return Subject.NAMED
    return Subject.NAMED


def telling(clause: Sequence[Token]) -> list[Token]:
    return [word for word in clause if word.part is Part.TELLS]


def worth(clause: Sequence[Token], subject: Subject, length: int, *, new: int, answers: bool) -> float:
    """What a note of `length` words tells for its length, when `new` of its telling words are not yet in the log."""
    tells = telling(clause)
    gain = new + _SUBJECT_WORTH[subject] + 0.5 * answers
    gain += 1.2 * any(word.days for word in tells)
    gain += 0.7 * any(word.text[0].isdigit() or word.low in COUNTED for word in tells)
    gain += 0.5 * any(word.text[0].isupper() for word in tells)
    gain += 0.5 * any(_is_past(word) for word in clause)
    gain -= 2.0 * any(word.low in SECOND or word.low in YOURS for word in clause)
    gain -= 0.3 * _has(clause, Part.NOT) + 0.2 * _has(clause, Part.PRAISE) + 0.3 * _has(clause, Part.COLOUR)
    gain -= 0.25 * sum(word.part is Part.LIGHT for word in clause)
    return gain / (length + _PAD)


def _is_past(word: Token) -> bool:
    return word.low in PAST or (len(word.low) > 3 and word.low.endswith("ed") and not word.low.endswith("eed"))


def _has(clause: Sequence[Token], part: Part) -> bool:
    return any(word.part is part for word in clause)
