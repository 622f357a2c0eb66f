"""A log rewritten smaller, by asking a model: it names changes, and only those are made that lose nothing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from memory import dates, reply, tokens
from memory.claims import aliases
from memory.dating import Resolve
from memory.fence import one_line
from memory.observation import Interval, Line, Priority, Reflection
from memory.outcome import Answer, Outcome, Prompt
from memory.reply import Form, Item
from memory.rewriting import CONDENSED, DUPLICATE, SUPERSEDED, Change, once_each, rewritten

LEVELS = (1, 2, 3, 4)
_TARGETS = {1: 0.9, 2: 0.75, 3: 0.6, 4: 0.45}  # of the threshold, by level
_OUTPUT = (1_024, 16_384)  # tokens of an answer, least and most
_MARKUP = 5  # tokens around one line in a prompt
_MARKS = {Priority.HIGH: "!", Priority.MEDIUM: "-", Priority.LOW: "."}
_WHYS = (DUPLICATE, SUPERSEDED, CONDENSED)
_FORM = Form("changes", "from", {"sources": "from", "source": "from", "lines": "from", "reason": "why"})


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What an answer came to. `reflection` is None unless the new log is smaller than the threshold.

    `tokens` counts the new log, also where it is too large; `refused` the changes that would have lost something, by
    reason.
    """

    outcome: Outcome
    reflection: Reflection | None = None
    tokens: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def prompt(lines: Sequence[Line], threshold: int, level: int) -> Prompt:
    """The question about the whole log, oldest line first, which is to come under `threshold` tokens; `level` 1 to 4."""
    size = _size(line.text for line in lines)
    share = min(95, int(100 * threshold * _TARGETS[level] / max(1, size)))
    least, most = _OUTPUT
    return Prompt(
        instructions=instructions(),
        data="\n".join(
            ["# Log", *_told(lines), f"# End of data. {_GOALS[level]} At most {share} % of the words may stay."]
        ),
        schema=answer_schema(),
        schema_name="changes",
        max_output_tokens=min(most, least + size),
    )


def read(answer: Answer, lines: Sequence[Line], threshold: int, resolve: Resolve = dates.resolve) -> Rewrite:
    """The log that `answer` makes of the same `lines`: every old line is a source of a new one or dropped for a reason.

    A change that loses a date, a name or a number, or drops without grounds, is not made; its lines stand.
    """
    answered = reply.read(answer, _FORM)
    if answered.outcome is not Outcome.OK:
        return Rewrite(answered.outcome)
    changes = [change for item in answered.items if (change := _change(item, lines)) is not None]
    if answered.items and not changes:
        return Rewrite(Outcome.UNPARSABLE)
    reflection, refused = rewritten(lines, changes, resolve)
    size = _size(line.text for line in reflection.lines)
    return Rewrite(Outcome.OK, reflection if 0 < size < threshold else None, size, refused)


def smallest_valid(candidates: Iterable[Rewrite]) -> Rewrite | None:
    """The candidate with the fewest tokens among those that hold; the earliest of equals."""
    valid = [candidate for candidate in candidates if candidate.reflection is not None]
    return min(valid, key=lambda candidate: candidate.tokens, default=None)


def chunks(lines: Sequence[Line], budget: int) -> list[tuple[Line, ...]]:
    """The log in stretches of at most `budget` tokens of prompt, for a window that it does not fit as a whole.

    They end between days where a day fits. Each is asked about with its `share` of the threshold; see `joined`.
    """
    stretches: list[list[Line]] = []
    left = 0
    for day in _days(lines, budget):
        size = sum(line.tokens + _MARKUP for line in day)
        if not stretches or size > left:
            stretches.append([])
            left = budget
        stretches[-1].extend(day)
        left -= size
    return [tuple(stretch) for stretch in stretches]


def share(threshold: int, chunk: Sequence[Line], lines: Sequence[Line]) -> int:
    """The tokens under which a chunk of the log must come so that the whole comes under `threshold`."""
    return threshold * _size(line.text for line in chunk) // max(1, _size(line.text for line in lines))


def joined(reflections: Iterable[Reflection]) -> Reflection:
    """The reflections of a log's chunks as the reflection of the log."""
    every = list(reflections)
    return Reflection(
        tuple(once_each([line for reflection in every for line in reflection.lines])),
        tuple(dropped for reflection in every for dropped in reflection.dropped),
    )


@cache
def instructions() -> str:
    """The same bytes for every call, so that a provider's cache holds them."""
    return files("memory.prompts").joinpath("reflector.md").read_text(encoding="utf-8")


def answer_schema() -> Mapping[str, Any]:
    """The JSON schema of an answer, in the strict form: each field required, nothing besides."""
    fields = {
        "from": {"type": "array", "items": {"type": "integer"}},
        "text": {"type": ["string", "null"]},
        "why": {"type": ["string", "null"], "enum": [*_WHYS, None]},
    }
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"changes": {"type": "array", "items": item}},
        "required": ["changes"],
        "additionalProperties": False,
    }


_GOALS = {
    1: "Merge and drop what repeats, and shorten what is long. Answer now, as JSON.",
    2: "Also condense details of older days. Answer now, as JSON.",
    3: "Condense hard: of older days keep what still matters, each in a few words. Answer now, as JSON.",
    4: "Condense as hard as the rules allow, everywhere. Answer now, as JSON.",
}


def _told(lines: Sequence[Line]) -> Iterator[str]:
    aliases_by_id = {line.id: alias for alias, line in enumerate(lines, 1)}
    day = ""
    for alias, line in enumerate(lines, 1):
        observed = line.observed_at.date().isoformat()
        if observed != day:
            day = observed
            yield f"@{day}"
        about = [_span(line.refers_to)] if line.refers_to else []
        about += [f"replaces {aliases_by_id[line.supersedes]}"] if line.supersedes in aliases_by_id else []
        yield f"{alias}{_MARKS[line.priority]}{'[' + ', '.join(about) + ']' if about else ''} {one_line(line.text)}"


def _span(days: Interval) -> str:
    start, end = days.start.isoformat(), days.end.isoformat()
    return start if start == end else f"{start}/{end}"


def _change(item: Item, lines: Sequence[Line]) -> Change | None:
    """One item as a change to known lines; None where it names none, or drops them without one of the reasons."""
    known = tuple(lines[alias - 1] for alias in aliases(item["from"]) if 1 <= alias <= len(lines))
    text = item.get("text")
    why = str(item.get("why") or "").strip().casefold()
    new = " ".join(text.split()) if isinstance(text, str) else ""
    return Change(known, new, why) if known and (new or why in _WHYS) else None


def _days(lines: Sequence[Line], budget: int) -> Iterator[list[Line]]:
    """The lines of each day; a day that is over the budget in as many pieces as it takes."""
    for _, day in groupby(lines, key=lambda line: line.observed_at.date()):
        piece: list[Line] = []
        left = budget
        for line in day:
            if piece and line.tokens + _MARKUP > left:
                yield piece
                piece, left = [], budget
            piece.append(line)
            left -= line.tokens + _MARKUP
        yield piece


def _size(texts: Iterable[str]) -> int:
    return sum(map(tokens.count, texts))
