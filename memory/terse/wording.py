"""The words of a note: a clause without what is silent, so that a person can still read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory.terse.clause import Subject
from memory.terse.token import Token
from memory.terse.words import COUNTED, MODALS, PARTS, PAST, RECURRING, SECOND, THIRD, WEEKLY, Part
from memory.wordlist import listed

_CARRY = frozenset({Part.TELLS, Part.COLOUR, Part.VAGUE, Part.LIGHT, Part.NOT, Part.LINK})
_WITHOUT_A_DEED = frozenset({Part.SILENT, Part.LINK, Part.MARK})
_HELPS = frozenset({"help", "helps", "helped", "helping"})
_EVERY = frozenset({"every", "each"})
_NOUNLIKE = frozenset({Part.TELLS, Part.VAGUE})
_VERBLIKE = frozenset({Part.TELLS, Part.LIGHT})
_DESCRIBED = frozenset({Part.TELLS, Part.COLOUR, Part.VAGUE, Part.PRAISE})
_THINGS = frozenset({Part.TELLS, Part.COLOUR, Part.VAGUE})
_BEFORE_A_DATE = frozenset({"in", "on", "at", "for"})
_AFTER_TO = frozenset({"be", "have", "do"})
_COPULAS = frozenset({"is", "are", "was", "were"})
_OTHERS = frozenset({"he", "she", "they"})
_POINTING = frozenset({"the", "this", "that"})
_PICKING = frozenset({"with", "without", "from"})
_RATES = frozenset({"minute", "hour", "day", "night", "week", "month", "year"})
_BOUNDS = frozenset({"most", "least", "more", "less"})
_BEING = frozenset({"i'm", "am", "we're"})
_PREDICATES = frozenset({Part.TELLS, Part.COLOUR})
_OBJECTS = frozenset({"me", "us", "them", "him", "her"})
_NEVER_LAST = frozenset(
    {
        ",",
        "without",
        "than",
        "is",
        "are",
        "was",
        "were",
        "be",
        "have",
        "has",
        "had",
        "will",
        "not",
        "never",
        "can't",
        "doesn't",
    }
)
_NEVER_FIRST = frozenset({",", "and", "or", "but", "of"})
_ADVERBS = frozenset(
    listed(
        "just also still really always usually often sometimes definitely totally absolutely even never mostly actually"
    )
)
_NO_VERBS = frozenset(listed("first second once almost nearly only both fast hard even more then today"))
_TAKES_INFINITIVE = frozenset({"to", "will", "not", "can't"})
_OWNERS = frozenset({"i", "we", "they", "he", "she"})
_OWNING = {"have": "has", "has": "has", "had": "had"}
_BEFORE_A_THING = frozenset(listed("a an the my our two three four five six no some many several this that"))


def wording(
    clause: Sequence[Token],
    subject: Subject,
    called: Mapping[str, str],
    hearer: str | None = None,
    *,
    spelled: bool = False,
    praise: bool = False,
) -> list[str]:
    """The words that a note keeps of `clause`; empty when nothing is left.

    `called` maps what the speakers are called, in lower case, to their names; `hearer` stands in for "you". `spelled`
    notes keep the "is" of what the speaker is, and those with `praise` the "great" of what was great.
    """
    return _Scribe(_without_calls(clause, subject, called), subject, hearer, spelled, praise).write()


def _without_calls(clause: Sequence[Token], subject: Subject, called: Mapping[str, str]) -> list[Token]:
    """The clause without a speaker's name that only calls for attention ("Thanks, Ana")."""
    last = len(clause) - 1
    kept = []
    for place, word in enumerate(clause):
        if word.low in called:
            edge = place in {0, last} or Part.MARK in {clause[place - 1].part, clause[place + 1].part}
            opens = place == 0 and place < last and clause[1].part is not Part.MARK and subject is Subject.NAMED
            if edge and not opens:
                continue
        kept.append(word)
    return kept


@dataclass(slots=True)
class _Scribe:
    """Writes a note word by word, looking one kept word ahead and one back."""

    words: Sequence[Token]
    subject: Subject
    hearer: str | None
    spelled: bool
    praise: bool
    note: list[str] = field(default_factory=list)
    last: Part | None = None

    def write(self) -> list[str]:
        following = self._following()
        for place, word in enumerate(self.words):
            text = self._kept(place, word, following[place])
            if text is not None:
                self.note.append(text)
                self.last = word.part
        return self._trimmed()

    def _following(self) -> list[Token | None]:
        """For each word the next one that carries something."""
        found: list[Token | None] = []
        upcoming: Token | None = None
        for place, word in reversed(list(enumerate(self.words))):
            found.append(upcoming)
            carries = word.part in _CARRY or (word.part is Part.PRAISE and self._is_denied(place))
            upcoming = word if carries else upcoming
        return found[::-1]

    def _is_denied(self, place: int) -> bool:
        """Praise says something where it is denied: "wasn't great"."""
        return place > 0 and self.words[place - 1].part is Part.NOT

    def _kept(self, place: int, word: Token, following: Token | None) -> str | None:
        match word.part:
            case Part.SILENT:
                return word.low if self._recurs(place, word) else self._silent(place, word, following)
            case Part.LINK:
                return self._link(place, word, following)
            case Part.MARK:
                return "," if following and self.note and self.note[-1] != "," else None
            case Part.PRAISE:
                return word.low if self.praise or self._is_denied(place) else None
            case _:
                return None if following is None and self._dangles(word) else self._carried(place, word)

    def _carried(self, place: int, word: Token) -> str:
        if word.part is Part.NOT:
            return "doesn't" if word.low == "don't" and self._follows_bare_i(place) else word.low
        if word.low == "gonna":
            return "will"
        return _third_person(word) if self._follows_bare_i(place) and self._opens(place) else word.text

    def _opens(self, place: int) -> bool:
        """Whether this is the first word of the note, or the first beside those that only say when."""
        return not self.note or (
            place > 1
            and self.last is Part.TELLS
            and all(
                word.days or word.low in RECURRING or word.low in WEEKLY or word.part in _WITHOUT_A_DEED
                for word in self.words[:place]
            )
        )

    def _dangles(self, word: Token) -> bool:
        """A verb that lost its object; but "the blue plan" is whole."""
        if word.part is Part.LIGHT:
            return bool(self.note) and (
                self.last not in _NOUNLIKE or word.low in PAST or word.low.endswith(("s", "ed", "ing"))
            )
        return word.part is Part.NOT

    def _follows_bare_i(self, place: int) -> bool:
        """Whether "I" or "we" stands before this word, with nothing but small adverbs between."""
        while place > 0 and self.words[place - 1].low in _ADVERBS:
            place -= 1
        return place > 0 and self.words[place - 1].low in {"i", "we"}

    def _link(self, place: int, word: Token, following: Token | None) -> str | None:
        if word.low == "and" and place + 1 < len(self.words) and self.words[place + 1].low == "i":
            self.note.insert(0, "with")  # "my wife and I went": went with wife
            return None
        if word.low == "like" and following and self._follows_bare_i(place):
            return "like" if self.note else "likes"
        if not self.note and following and word.low == "on" and following.low in WEEKLY:
            return word.low
        points = [near.low for near in self.words[place + 1 : place + 3]][-1:] == ["one"]
        if not self.note or following is None or (following.part is Part.LINK and word.low != "instead" and not points):
            return None
        if self.note[-1] == "," and word.low in _NEVER_FIRST:
            return None
        return None if following.days and word.low in _BEFORE_A_DATE else word.low

    def _silent(self, place: int, word: Token, following: Token | None) -> str | None:
        """Of the silent words those stay without which the note says something else, or nothing."""
        before = self.words[place - 1] if place else None
        if before and following and word.low in _OWNING and before.low in _OWNERS:
            return self._owning(place, word)
        if not self.note or before is None:
            return self._opening(word, following)
        if self._stands_for_a_thing(place, word, before) or (following and self._counts(place, word, before)):
            return word.low
        if word.low in _OBJECTS:
            return word.low if self._is_object(place, word, before, following) else None
        return word.low if following and _is_needed(word, before, following) else self._you(word)

    def _recurs(self, place: int, word: Token) -> bool:
        """The "every" of "every Monday", and the "other" of "every other week"."""
        after = self.words[place + 1] if place + 1 < len(self.words) else None
        if word.low in _EVERY:
            return after is not None and (after.low in RECURRING or after.text[0].isdigit())
        return word.low == "other" and place > 0 and self.words[place - 1].low == "every"

    def _counts(self, place: int, word: Token, before: Token) -> bool:
        """Small words that belong to a number: "900 euros a month", "at most eight people"."""
        if place + 1 >= len(self.words):
            return False
        after = self.words[place + 1]
        if word.low in {"a", "an"}:
            return after.low in _RATES and before.part is Part.TELLS
        return word.low in _BOUNDS and (after.text[0].isdigit() or after.low in COUNTED)

    def _opening(self, word: Token, following: Token | None) -> str | None:
        if word.low in THIRD and self.subject is Subject.OTHERS:
            return self._others(word, following)
        if word.low in _BEING and self.spelled and following:
            return "is" if following.part in _PREDICATES and not following.low.endswith("ing") else None
        return "will" if word.low in {"i'll", "we'll"} and following else None

    def _others(self, word: Token, following: Token | None) -> str:
        who, mark, verb = word.low.partition("'")
        says_what = following is not None and following.part is Part.TELLS and not following.low.endswith("ing")
        return f"{who} {'are' if who == 'they' else 'is'}" if mark and verb in {"s", "re"} and says_what else who

    def _owns(self, place: int, word: Token) -> bool:
        """Whether "her" says whose the next word is."""
        return word.low == "her" and place + 1 < len(self.words) and self.words[place + 1].part in _DESCRIBED

    def _owning(self, place: int, word: Token) -> str | None:
        """The verb of owning: "I have two dogs" keeps it; "I have seen" does not."""
        after = self.words[place + 1]
        owns = (
            after.low in _BEFORE_A_THING
            or after.text[0].isdigit()
            or (after.part in _THINGS and not _is_participle(after))
        )
        if not owns:
            return None
        return "have" if word.low == "have" and self.words[place - 1].low == "they" else _OWNING[word.low]

    def _stands_for_a_thing(self, place: int, word: Token, before: Token) -> bool:
        """The "one" of "the red one", at the end of a clause too: else it went with blue."""
        if word.low not in {"one", "ones"} or place < 2:
            return False
        after = self.words[place + 1].low if place + 1 < len(self.words) else ""
        if before.low in _POINTING and after in _PICKING:
            return True  # "the one with the lid"
        return before.part in _DESCRIBED and self.words[place - 2].low in {"the", "a", "an", "this", "that"}

    def _is_object(self, place: int, word: Token, before: Token, following: Token | None) -> bool:
        """Whether a verb stands before "me" and needs it; whom somebody helps carry things, the line says already."""
        if word.low in {"me", "us"} and before.low in _HELPS and following:
            return False
        return before.part in _VERBLIKE and not self._owns(place, word)

    def _you(self, word: Token) -> str | None:
        if self.last is not Part.LINK or word.low not in SECOND:
            return None
        if self.hearer is None or self.note[-1] not in {"with", "to", "for", "from"}:
            self.note.pop()  # "proud of": of whom, nobody knows
            return None
        return self.hearer

    def _trimmed(self) -> list[str]:
        while self.note and (self.note[-1] in _NEVER_LAST or PARTS.get(self.note[-1]) is Part.LINK):
            self.note.pop()
        start = 0
        while start < len(self.note) and self.note[start] in _NEVER_FIRST:
            start += 1
        return self.note[start:]


def _is_needed(word: Token, before: Token, following: Token) -> bool:
    """The verb that ties what stands around it: "to be brave", "the stories were sad"."""
    if word.low in _COPULAS:
        return (before.part in _NOUNLIKE or before.low in _OTHERS) and following.part is not Part.LINK
    return word.low in _AFTER_TO and before.low in _TAKES_INFINITIVE


def _is_participle(word: Token) -> bool:
    return word.low in PAST or word.low.endswith(("ed", "en", "ing", "wn"))


def _third_person(verb: Token) -> str:
    """The plain verb after "I" as of another: "love" becomes "loves"; past forms stay, and what is no verb."""
    low = verb.low
    if (
        low in _ADVERBS
        or not verb.text.isalpha()
        or not verb.text.islower()
        or low in PAST
        or low in MODALS
        or (low.endswith(("ed", "ing", "s", "ly")) and not low.endswith("eed"))
        or verb.part not in _VERBLIKE
    ):
        return verb.text
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("sh", "ch", "x", "o", "z")) else "s")
