"""Turns into observations, by asking a model: what it is shown, and what of its answer holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from memory import checks, claims, dates, reply, tokens, transcript
from memory.checks import Record
from memory.dating import Resolve
from memory.fence import one_line
from memory.observation import Draft, Kind, Line, Priority
from memory.outcome import Answer, Outcome, Prompt
from memory.turn import Turn

TAIL = 300  # tokens of the log that are shown
_LEAST_ROOM = 256  # tokens of turns, however small the window
_AROUND = 400  # tokens of headings, time lines, and a schema that a server wants in the prompt
_OUTPUT = (1_024, 8_192)  # tokens of an answer, least and most


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer came to. `dropped` counts what did not hold, by reason; `cut_off`: the model may have had more."""

    outcome: Outcome
    drafts: tuple[Draft, ...] = ()
    dropped: Counter[str] = field(default_factory=Counter)
    cut_off: bool = False


def prompt(turns: Sequence[Turn], tail: Sequence[Line]) -> Prompt:
    """The question about `turns`, in conversation order and possibly in parts. `tail` is the log's end, oldest first."""
    spoken = transcript.spoken(turns)
    lines = [
        "# Log",
        *(_logged(alias, line) for alias, line in enumerate(shown(tail), 1)),
        "# Turns",
        *transcript.told(spoken),
        "# End of data. Answer now, as JSON.",
    ]
    least, most = _OUTPUT
    return Prompt(
        instructions=instructions(),
        data="\n".join(lines),
        schema=answer_schema(),
        schema_name="observations",
        max_output_tokens=min(most, least + sum(turn.tokens for turn in spoken)),
    )


def read(answer: Answer, turns: Sequence[Turn], tail: Sequence[Line], resolve: Resolve = dates.resolve) -> Reading:
    """What of `answer` holds, for the same `turns` and `tail` as in its prompt.

    OK with no drafts means that there was nothing to note, or nothing new. An answer of which nothing has the right
    form is UNPARSABLE, so that it is asked again.
    """
    answered = reply.read(answer, claims.FORM)
    if answered.outcome is not Outcome.OK:
        return Reading(answered.outcome)
    spoken = transcript.spoken(turns)
    misshapen: Counter[str] = Counter()
    claimed = list(claims.claims(answered.items, spoken, shown(tail), misshapen))
    drafts, dropped = checks.sift(claimed, Record(spoken, tail, instructions(), resolve))
    outcome = Outcome.OK if drafts or not answered.items else _of_no_use(len(claimed), dropped)
    return Reading(outcome, tuple(drafts), misshapen + dropped, answered.cut_off)


def complaint(outcome: Outcome) -> str:
    """What to add at the end of a prompt's data when it is asked again, after an answer of no use."""
    return _COMPLAINTS.get(outcome, _COMPLAINTS[Outcome.UNPARSABLE])


def room(window: int, max_output: int) -> int:
    """The tokens of turns that fit beside everything else into a model's `window`, `max_output` being the answer's."""
    return max(_LEAST_ROOM, window - max_output - tokens.count(instructions()) - TAIL - _AROUND)


@cache
def instructions() -> str:
    """The same bytes for every call, so that a provider's cache holds them."""
    return files("memory.prompts").joinpath("observer.md").read_text(encoding="utf-8")


def answer_schema() -> Mapping[str, Any]:
    """The JSON schema of an answer, in the strict form: each field required, nothing besides."""
    fields = {
        "text": {"type": "string"},
        "kind": {"type": "string", "enum": list(Kind)},
        "priority": {"type": "string", "enum": list(Priority)},
        "evidence": {"type": "array", "items": {"type": "integer"}},
        "refers_to": {"type": ["string", "null"]},
        "replaces": {"type": ["string", "null"]},
    }
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"observations": {"type": "array", "items": item}},
        "required": ["observations"],
        "additionalProperties": False,
    }


def shown(tail: Sequence[Line]) -> list[Line]:
    """The newest lines that fit TAIL tokens, oldest first."""
    kept: list[Line] = []
    left = TAIL
    for line in reversed(tail):
        left -= tokens.count(f"{_logged(len(tail), line)}\n")
        if left < 0:
            break
        kept.append(line)
    return kept[::-1]


def _logged(alias: int, line: Line) -> str:
    return f"L{alias} {line.observed_at.date().isoformat()} {one_line(line.text)}"


def _of_no_use(claimed: int, dropped: Counter[str]) -> Outcome:
    """What an answer is of which nothing was kept: OK when it only said what is known, or what no evidence bears out."""
    if not claimed:
        return Outcome.UNPARSABLE
    for outcome, reasons in _FAILURES.items():
        if sum(dropped[reason] for reason in reasons) == claimed:
            return outcome
    return Outcome.OK


_FAILURES = {Outcome.OVER_LONG: ("over_length",), Outcome.DEGENERATE: ("looping", "instruction_copy")}

_COMPLAINTS = {
    Outcome.UNPARSABLE: "# Your last answer was not valid JSON of the form asked for. Answer with that JSON object only.",
    Outcome.DEGENERATE: "# Your last answer repeated itself or its instructions. Say each thing once, as that JSON object.",
    Outcome.OVER_LONG: "# Your last answer was too long. Keep what matters most, in short texts, as that JSON object.",
    Outcome.REFUSAL: "# Your last answer was a refusal. You only take notes. Answer with that JSON object, empty if need be.",
    Outcome.EMPTY: "# Your last answer was empty. Answer with the JSON object asked for.",
}
