"""Asking about ever fewer turns until an answer is of use, so that one turn that breaks every answer ends up alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from jobs.asking import Asker
from memory import batches, observer
from memory.observation import Draft, Line
from memory.outcome import Outcome
from memory.turn import Turn
from models.columns import utc_now
from models.work import Claim
from privacy.sealing import SealingKey

TRIES_ALONE = 3  # spaced tries at one turn before it is set aside
_KEPT = "attempts"  # in the work's progress, from one try to the next


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer that was of no use."""

    outcome: str
    at: str

    def record(self) -> dict[str, str]:
        """As the quarantine keeps it."""
        return {"outcome": self.outcome, "at": self.at}


def earlier(claim: Claim) -> list[Attempt]:
    """What earlier tries of this work got, when they ended at one turn alone."""
    return [Attempt(**attempt) for attempt in json.loads(claim.progress.get(_KEPT, "[]"))]


@dataclass(frozen=True, slots=True)
class Thought:
    """What became of the first turns of a batch: drafts about them, or the one turn set aside and why."""

    turns: Sequence[Turn]
    drafts: Sequence[Draft] = ()
    set_aside: str | None = None
    attempts: Sequence[Attempt] = ()


class NoUse(Exception):
    """One turn, alone, got no answer of use; it is tried again later before it is set aside."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        super().__init__(attempts[-1].outcome)
        self.outcome, self._attempts = attempts[-1].outcome, attempts

    def progress(self) -> Mapping[str, Any]:
        """What the work is to remember until its next try; see `earlier`."""
        return {_KEPT: json.dumps([attempt.record() for attempt in self._attempts])}


@dataclass(frozen=True, slots=True)
class Question:
    """Whose log is asked about, for which work, and what the log says last. `room` is in tokens of turns."""

    asker: Asker
    claim: Claim
    subject: UUID
    key: SealingKey
    tail: Sequence[Line]
    room: int


async def think(question: Question, turns: Sequence[Turn]) -> Thought:
    """Drafts about the longest first part of `turns` that the model has an answer for.

    Raises Wait for what passes by itself, NoUse while a turn that stands alone has tries left.
    """
    attempts = earlier(question.claim)
    while True:
        drafts = await _ask_about(question, turns, attempts)
        if drafts is not None:
            return Thought(turns, drafts)
        if len(turns) == 1:
            return _set_aside(question.claim, turns, attempts)
        turns = _fewer(turns)


def _fewer(turns: Sequence[Turn]) -> Sequence[Turn]:
    # The first half in the log's order, not the conversations': the cursor moves over a prefix of the log.
    half = batches.prefix(turns, sum(map(batches.cost, turns)) // 2)
    return turns[: half if half < len(turns) else len(turns) // 2]


def _set_aside(claim: Claim, turns: Sequence[Turn], attempts: Sequence[Attempt]) -> Thought:
    if tries(claim) < TRIES_ALONE:
        raise NoUse(attempts)
    return Thought(turns, set_aside=attempts[-1].outcome, attempts=attempts)


def tries(claim: Claim) -> int:
    """Which try this is, crashes left out: only answers count against a turn."""
    return claim.attempt - claim.crashes


async def _ask_about(question: Question, turns: Sequence[Turn], attempts: list[Attempt]) -> list[Draft] | None:
    drafts: list[Draft] = []
    for portion in batches.portions(turns, question.room):
        found = await _ask_twice(question, portion, attempts)
        if found is None:
            return None
        drafts += found
    return drafts


async def _ask_twice(question: Question, turns: Sequence[Turn], attempts: list[Attempt]) -> list[Draft] | None:
    """Drafts, or None when neither the first answer nor the one to the complaint about it was of use."""
    prompt = observer.prompt(turns, question.tail)
    for _ in range(2):
        answer = await question.asker.ask(question.claim, question.subject, question.key, prompt)
        reading = observer.read(answer, turns, question.tail)
        whole = not reading.cut_off or len(turns) == 1
        if reading.outcome is Outcome.OK and whole:
            return list(reading.drafts)
        outcome = reading.outcome if whole else Outcome.OVER_LONG
        attempts.append(Attempt(outcome, utc_now().isoformat()))
        if outcome is Outcome.OVER_LONG:
            return None  # the same turns would be too much again
        said = observer.complaint(outcome)
        prompt = replace(prompt, data=f"{prompt.data}\n{said}")
    return None
