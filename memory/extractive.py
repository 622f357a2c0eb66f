"""builtin:extractive, the observer without a model: rules alone, offline, the same lines for the same turns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.observation import MAX_TEXT, Draft, Kind, Line, Priority
from memory.reckoning.language import language_of
from memory.sentences import is_question
from memory.stems import stems
from memory.terse import dialogue, english, foreign
from memory.terse.correction import corrected
from memory.terse.ear import Ear, Speech
from memory.terse.kind import kind_of, priority_of
from memory.terse.known import Said
from memory.terse.line import Joined, joined
from memory.terse.speech import PAUSE, Voices, label_of, spoken, talks, voices_of
from memory.terse.statement import Statement
from memory.turn import Role, Turn

_LOWER = re.compile(r"(?<=[\w,] )[a-z][a-z'-]+")
_TELLING = 12  # characters that show a language
_DOUBTFUL = 80  # characters that may still show a near one: "Prefiro" is Portuguese, and Spanish
_HEARD = 300  # characters of what people said before, which show the language better
_NEAR = frozenset({"pt", "es", "it", "fr"})
_RANK = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}


def observe(turns: Sequence[Turn], tail: Sequence[Line]) -> list[Draft]:
    """What `turns`, one log's batch in conversation order, say that `tail`, the newest of its lines, does not say yet.

    Each draft cites its turns and is as old as the first of them. Texts are data, whatever they ask for.
    """
    said = Said(line.text for line in tail)
    drafts = []
    for talk in talks(turns):
        for line in _lines(talk, tail):
            draft = _draft(line, tail)
            if not said.says(draft.text):
                said.add(draft.text)
                drafts.append(draft)
    return drafts


def _lines(talk: Sequence[Turn], tail: Sequence[Line]) -> list[Joined]:
    """People among themselves ramble, so that a line joins what one of them says on; to an agent a sentence is a fact."""
    listener = _Listener(voices_of(talk), _ear(talk, tail))
    said = (heard for turn in talk for heard in listener.hear(turn))
    return sorted(joined(said, over_turns=listener.voices.several), key=lambda line: line.place)


def _ear(talk: Sequence[Turn], tail: Sequence[Line]) -> Ear:
    """An ear that knows what was said in the part of this talk which an earlier batch held."""
    ear = Ear(voices_of(talk).called, frozenset(word for turn in talk for word in _LOWER.findall(turn.text)))
    for line in tail:
        if abs(talk[0].said_at - line.observed_at) <= PAUSE:
            ear.said |= stems(line.text)
    return ear


@dataclass(slots=True)
class _Listener:
    """Follows one talk turn by turn, with the question that stands open."""

    voices: Voices
    ear: Ear
    language: str = ""
    before: str = ""
    question: str | None = None
    asker: str | None = None

    def hear(self, turn: Turn) -> Iterator[tuple[Turn, str, Statement]]:
        """(turn, who speaks, statement) for all that the turn states; nothing for what a tool returned."""
        if turn.role not in {Role.USER, Role.ASSISTANT}:
            return
        sentences, captions = spoken(turn.text)
        self._attune(" ".join(sentences))
        speaker = turn.name or turn.role.value
        if self.voices.is_person(turn):
            self.before = f"{self.before} {' '.join(sentences)}"[-_HEARD:]
            asked = self.question if self.asker != speaker else None
            speech = Speech(turn, sentences, captions, asked, self.voices.hearer_of(turn), not self.voices.several)
            label, stated = label_of(turn, self.language), self._stated(speech)
        else:
            label, stated = "Assistant", dialogue.deeds(turn, sentences, self.ear)
        yield from ((turn, label, statement) for statement in stated)
        self.question, self.asker = next((one for one in reversed(sentences) if is_question(one)), None), speaker

    def _attune(self, said: str) -> None:
        """A word or two is in the language of the turn before: "no" is in many."""
        if self.language == "" or len(said) > _TELLING or not said.isascii():
            shown = language_of(f"{said} ·")  # "other" where nothing shows; what is plain would count as English
            near = {shown, self.language} <= _NEAR or (
                self.language in _NEAR and (shown == "other" or not said.isascii())
            )
            doubtful = near and len(said) < _DOUBTFUL
            self.language = language_of(f"{self.before} {said}" if doubtful else said)

    def _stated(self, speech: Speech) -> Iterator[Statement]:
        if self.language == "en":
            return english.statements(speech, self.ear)
        return foreign.statements(speech, self.language, self.ear)


def _draft(line: Joined, tail: Sequence[Line]) -> Draft:
    """The line with the kind and priority of what matters most in it."""
    text = f"{line.label}: {line.text}"[:MAX_TEXT]
    sentences = list(dict.fromkeys(line.sources))
    replaced = corrected(sentences[0], text, tail) if len(sentences) == 1 else None
    if replaced is not None:
        kind, priority = Kind.CORRECTION, Priority.HIGH
    else:
        kind, priority = _weightiest(sentences, line)
    return Draft(text, kind, priority, line.observed_at, tuple(line.evidence), line.days, replaced)


def _weightiest(sentences: Sequence[str], line: Joined) -> tuple[Kind, Priority]:
    kinds = [kind_of(sentence, line.days, line.observed_at.date()) for sentence in sentences]
    ranked = [(kind, priority_of(one, kind, line.days)) for one, kind in zip(sentences, kinds, strict=True)]
    return min(ranked, key=lambda one: _RANK[one[1]])
