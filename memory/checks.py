"""What of a model's answer may become memory: each claim is held against the turns that it cites and against the log."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from memory import loops
from memory.dating import Evidence, Resolve
from memory.observation import MAX_TEXT, Draft, Interval, Kind, Line, Priority
from memory.turn import Role, Turn

_SHINGLE = 5  # words
_CONTEXT = 2  # turns before the evidence that may hold the question which it answers
_PERSONAL = frozenset({Kind.ATTRIBUTE, Kind.PREFERENCE, Kind.PLAN, Kind.CORRECTION})
_KEPT_MARKS = frozenset("#%&*+@/\\‰")  # punctuation to Unicode, but "C#" is not "C", nor "5%" 5
_QUESTION = ("?", "？", "؟", "՞", "፧")


@dataclass(frozen=True, slots=True)
class Claim:
    """One item of an answer that has the right form: `turns` are the evidence, at least one."""

    text: str
    kind: Kind
    priority: Priority
    turns: tuple[Turn, ...]
    refers_to: Interval | None
    supersedes: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """What claims are held against: the batch in its order, the log, the words of the instructions, a date reader."""

    turns: Sequence[Turn]
    log: Sequence[Line]
    instructions: str
    resolve: Resolve


def sift(claims: Iterable[Claim], record: Record) -> tuple[list[Draft], Counter[str]]:
    """The claims that hold, and how many do not, by reason. A date that does not hold is dropped from a claim that does."""
    record = replace(record, resolve=cache(record.resolve))  # many claims cite the same turns
    known = {_identity(line.text, line.refers_to) for line in record.log}
    fresh: set[tuple[str, Interval | None]] = set()
    drafts: list[Draft] = []
    dropped: Counter[str] = Counter()
    for claim in claims:
        fault = _fault(claim, record)
        evidence = Evidence(_context(claim, record.turns), record.resolve) if fault is None else None
        if evidence is None or not _dates_hold(claim, evidence, record):
            dropped[fault or "unsupported_date"] += 1
            continue
        draft = _draft(claim, evidence)
        dropped["date_left_out"] += claim.refers_to is not None and draft.refers_to is None
        identity = _identity(draft.text, draft.refers_to)
        if identity in known or identity in fresh:
            dropped["duplicate_of_log" if identity in known else "duplicate"] += 1
            continue
        fresh.add(identity)
        drafts.append(draft)
    return drafts, +dropped


def normalise(text: str) -> str:
    """What two texts that say the same in the same words have in common: case, spaces, forms and punctuation aside.

    Punctuation becomes a space, so that "3.5" is not 35; signs that carry meaning stay. Idempotent.
    """
    folded = _folded(_folded(text))
    plain = "".join(_plain(folded, at) for at in range(len(folded)))
    return " ".join(_folded(plain).split()) or " ".join(folded.split())


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(mark for mark in folded if mark.isspace() or unicodedata.category(mark) not in {"Cf", "Cc"})


def _plain(text: str, at: int) -> str:
    character = text[at]
    if not unicodedata.category(character).startswith("P") or character in _KEPT_MARKS:
        return character
    minus = character == "-" and text[at + 1 : at + 2].isdigit() and not text[max(0, at - 1) : at].isalnum()
    return character if minus else " "


def _identity(text: str, refers_to: Interval | None) -> tuple[str, Interval | None]:
    return normalise(text), refers_to


def _fault(claim: Claim, record: Record) -> str | None:
    """The first reason against a claim, dates and duplicates aside."""
    if len(claim.text) > MAX_TEXT:
        return "over_length"
    if loops.looping(claim.text):
        return "looping"
    if claim.text.endswith(_QUESTION):
        return "question"
    if copied(claim.text, record.instructions):
        return "instruction_copy"
    if claim.kind in _PERSONAL and not _own_word(claim, record.turns):
        return "not_the_persons_word"
    return None


def copied(text: str, instructions: str) -> bool:
    """Whether half of the text's runs of five words stand in the instructions."""
    runs = _runs(text)
    return bool(runs) and 2 * len(runs & _instructed(instructions)) >= len(runs)


@cache
def _instructed(instructions: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_runs(instructions))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = normalise(text).split()
    return {tuple(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)}


def _own_word(claim: Claim, turns: Sequence[Turn]) -> bool:
    """Whether the person said it: a user's turn, or among several named speakers the one that the text names."""
    if any(turn.role is Role.USER for turn in claim.turns):
        return True
    people = {turn.name for turn in turns if turn.name and turn.role in {Role.USER, Role.ASSISTANT}}
    speakers = {turn.name for turn in claim.turns if turn.name and turn.role is Role.ASSISTANT}
    return len(people) > 1 and any(_names(claim.text, speaker) for speaker in speakers)


def _names(text: str, speaker: str) -> bool:
    said = set(normalise(text).split())
    return any(word in said for word in normalise(speaker).split()) or normalise(speaker) in normalise(text)


def _context(claim: Claim, turns: Sequence[Turn]) -> list[Turn]:
    """The evidence, and before each of its turns what that turn may answer."""
    cited = set(claim.turns)
    around = {at for at, turn in enumerate(turns) if turn in cited}
    near = {before for at in around for before in range(max(0, at - _CONTEXT), at + 1)}
    spoken = {turn.conversation for turn in claim.turns}
    return [turns[at] for at in sorted(near) if turns[at].conversation in spoken]


def _dates_hold(claim: Claim, evidence: Evidence, record: Record) -> bool:
    """Whether each day that the text itself tells of was said, or stood in the line that it corrects."""
    before = [line for line in record.log if line.id == claim.supersedes]
    earlier = {found.interval for line in before for found in record.resolve(line.text, line.observed_at)}
    earlier |= {line.refers_to for line in before if line.refers_to}
    return all(
        told.interval in earlier or evidence.allows(claim.text[told.start : told.end], told.interval)
        for told in record.resolve(claim.text, _said_at(claim).said_at)
    )


def _draft(claim: Claim, evidence: Evidence) -> Draft:
    return Draft(
        text=claim.text,
        kind=claim.kind,
        priority=claim.priority,
        observed_at=_said_at(claim).said_at,
        evidence=tuple(sorted({turn.id for turn in claim.turns})),
        refers_to=evidence.settle(claim.refers_to) if claim.refers_to else None,
        supersedes=claim.supersedes,
    )


def _said_at(claim: Claim) -> Turn:
    """The turn whose time the claim has: the last of the person's among the evidence, else the last."""
    own = [turn for turn in claim.turns if turn.role is Role.USER] or list(claim.turns)
    return max(own, key=lambda turn: turn.said_at)
