"""What of a conversation is its customer's own, so that a sentence about the work can be told from one about somebody."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.deeds import Call, leaves, result_of
from memory.turn import Role, Turn
from memory.wordlist import listed

_TOKEN = re.compile(r"[^\W_]+(?:[._@#+'’-][^\W_]+)*")
_OWN = re.compile(
    r"name|customer|guest|user|owner|passenger|first|last|person|patient|contact|address|street|city|zip|post|mail|phone|birth|dob"
    r"|account|pin|card|payment|password|secret|answer|maiden|pet|id$|number|host|venue|doctor|driver",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]+(?:_\d+|:[a-p]+)?>")
_FOREIGN = re.compile(r"[<>@{}\[\]|\\*#`\"“”„«»]|https?:|www\.")
_ACRONYM = re.compile(r"[A-Z]{2,5}")
_COMMON = frozenset(
    listed("""
        a an and any are as at be can could day days do for from get have help how i if in is it like may me my name no not of on one
        or please should some that the their there this time to two was we what when where which who will with would yes you your all
        number more new need want about account book booking card check credit date id order payment user reservation first last full
        address phone email city hotel flight restaurant doctor ride party meeting apartment bank weather trip invoice ticket customer
        agent company service room am pm
    """)
)


@dataclass(frozen=True, slots=True)
class Own:
    """`theirs`: words of who somebody is; `values`: words of whatever was asked, given or found."""

    theirs: frozenset[str]
    values: frozenset[str]

    @classmethod
    def of(cls, turns: Sequence[Turn], calls: Sequence[Call]) -> "Own":
        """What is the customer's in these turns."""
        given = [leaf for call in calls for leaf in leaves(dict(call.arguments))]
        given += [leaf for call in calls for leaf in leaves(result_of(call))]
        theirs = {word for name, value in given if _OWN.search(name) for word in _words(value)}
        values = {word for _, value in given for word in _words(value)}
        names = {turn.name for turn in turns if turn.name}
        theirs |= {word for name in names for word in _words(name)}
        values |= {word for turn in turns if turn.role is Role.USER for word in _named(turn.text)}
        schema = {word for call in calls for word in _words(" ".join((call.name.replace("_", " "), *call.arguments)))}
        return cls(frozenset(theirs - _COMMON - schema), frozenset((values | theirs) - _COMMON))

    def free(self, sentence: str) -> bool:
        """Whether nothing in the sentence is anybody's: no number, no name, no value that was given or found."""
        if _FOREIGN.search(sentence) or any(mark.isdigit() for mark in sentence):
            return False
        return not any(self._taken(found[0], found.start() == 0) for found in _TOKEN.finditer(sentence))

    def bare(self, message: str) -> str:
        """A tool's message without what is anybody's, each such run as an ellipsis."""
        told = _PLACEHOLDER.sub("…", message)
        told = re.sub(r"\"[^\"]*\"|'[^']*'", "…", told)
        told = re.sub(r"[\w@#$€£%+./:-]*\d[\w@#$€£%+./:-]*", "…", told)
        told = _TOKEN.sub(lambda found: "…" if self._taken(found[0], found.start() == 0) else found[0], told)
        return re.sub(r"…(?:[\s,.;:$€£-]*…)+", "…", " ".join(_FOREIGN.sub("", told).split()))

    def _taken(self, token: str, begins: bool) -> bool:  # noqa: FBT001 - private, where the token stands
        words = set(_words(token))
        if words & self.theirs or any(mark.isdigit() for mark in token):
            return True
        if begins or _ACRONYM.fullmatch(token) or not token[:1].isupper():
            return False
        return bool(words & self.values)


def _words(text: str) -> Iterable[str]:
    return [
        word.casefold() for word in _TOKEN.findall(text) for word in (word, *re.split(r"\W", word)) if len(word) > 1
    ]


def _named(text: str) -> Iterable[str]:
    """Words that are written as names are: with a capital, not only at the beginning of a sentence."""
    return [
        found[0].casefold()
        for found in re.finditer(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-z][\w'’-]+", text)
        if found[0].casefold() not in _COMMON
    ]
