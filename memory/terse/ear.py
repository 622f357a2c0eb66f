"""What a listener has before them and in mind: one turn's speech, and what the talk has said until then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory.stems import stem
from memory.terse.token import Token
from memory.terse.words import MEN, WOMEN
from memory.turn import Turn


@dataclass(frozen=True, slots=True)
class Speech:
    """A person's turn: its sentences and its pictures' captions, the question that it answers, whom "you" means.

    `to_agent` tells a talk with an assistant from one among people.
    """

    turn: Turn
    sentences: Sequence[str]
    captions: Sequence[str] = ()
    asked: str | None = None
    hearer: str | None = None
    to_agent: bool = False


@dataclass(slots=True)
class Ear:
    """How people are called, which words a chat also writes small, which were said, who was spoken of last."""

    called: Mapping[str, str]
    common: frozenset[str]
    said: set[str] = field(default_factory=set)
    man: str | None = None
    woman: str | None = None

    def new_in(self, words: Sequence[Token]) -> list[Token]:
        return [word for word in words if word.days or stem(word.low) not in self.said]

    def note(self, words: Sequence[Token]) -> None:
        for word in words:
            self.said.add(stem(word.low))
            self.man = word.text if word.low in MEN else self.man
            self.woman = word.text if word.low in WOMEN else self.woman
