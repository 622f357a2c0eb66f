"""Turns into one note about the work, by asking a model: what it is shown, and what of its answer holds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from memory import batches, checks, loops, reply, tokens, transcript
from memory.note import LONGEST_BODY, LONGEST_TAG, LONGEST_TITLE, MOST_TAGS, Draft, NoteKind, folded_tags
from memory.outcome import Answer, Outcome, Prompt
from memory.reply import Form, Item
from memory.turn import ToolCall, Turn

_OUTPUT = 2_048  # tokens of an answer: the longest note, and as much again for a model that thinks aloud
_TOLD = 4_000  # characters of one turn that are shown; a tool's page of results teaches nothing beyond
_AROUND = 400  # tokens of headings and time lines
_LEAST_BODY = 20  # characters

_FORM = Form(
    key="notes",
    mark="body",
    synonyms={
        "note": "notes",
        "text": "body",
        "content": "body",
        "steps": "body",
        "procedure": "body",
        "name": "title",
        "heading": "title",
        "type": "kind",
        "labels": "tags",
    },
)
# What speaks of its own approval, or to whoever reads it, is no note about the work.
_ON_ITSELF = re.compile(
    r"\b(?:auto(?:matically|-)?\s*approv\w*|approv\w*\s+(?:this|itself|the\s+(?:note|proposal)|(?:all\s+)?(?:notes|proposals))"
    r"|(?:this|the)\s+(?:note|proposal)\s+(?:is|was|has\s+been|must\s+be|should\s+be)\s+(?:pre-?)?(?:approved|accepted|published)"
    r"|(?:ignore|disregard|override)\s+(?:all\s+|any\s+|the\s+|your\s+)*(?:previous|prior|above|earlier|system)?\s*"
    r"(?:instructions?|rules|prompts?|reviewers?)|(?:skip|bypass|without)\s+(?:the\s+|any\s+|human\s+)*review\b"
    r"|dear\s+reviewer|reviewer\s*[:,]|system\s+prompt)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer came to. OK without a draft: there is nothing that could be used again."""

    outcome: Outcome
    draft: Draft | None = None


def prompt(turns: Sequence[Turn], room: int) -> Prompt:
    """The question about `turns`, in conversation order; the last of them that fit `room` tokens."""
    told = _fitting([_shortened(turn) for turn in transcript.spoken(turns)], room)
    lines = ["# Turns", *transcript.told(told), "# End of data. Answer now, as JSON."]
    return Prompt(
        instructions=instructions(),
        data="\n".join(lines),
        schema=answer_schema(),
        schema_name="notes",
        max_output_tokens=_OUTPUT,
    )


def read(answer: Answer) -> Reading:
    """The first note of `answer` that has the form of one. Whatever else it says, of its approval too, is not read."""
    answered = reply.read(answer, _FORM)
    if answered.outcome is not Outcome.OK:
        return Reading(answered.outcome)
    if answered.cut_off:
        return Reading(Outcome.OVER_LONG)
    drafts = [draft for item in answered.items if (draft := _draft(item)) is not None]
    if not drafts:
        return Reading(Outcome.UNPARSABLE if answered.items else Outcome.OK)
    text = "\n".join(drafts[0].texts)
    if loops.looping(text) or _says_again(drafts[0].body):
        return Reading(Outcome.DEGENERATE)
    if checks.copied(text, instructions()) or _ON_ITSELF.search(text):
        return Reading(Outcome.OK)
    return Reading(Outcome.OK, drafts[0])


@cache
def instructions() -> str:
    """The same bytes for every call, so that a provider's cache holds them."""
    return files("memory.prompts").joinpath("distiller.md").read_text(encoding="utf-8")


def answer_schema() -> Mapping[str, Any]:
    """The JSON schema of an answer, in the strict form: each field required, nothing besides."""
    fields = {
        "kind": {"type": "string", "enum": list(NoteKind)},
        "title": {"type": "string"},
        "body": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"notes": {"type": "array", "items": item}},
        "required": ["notes"],
        "additionalProperties": False,
    }


def _shortened(turn: Turn) -> Turn:
    text = turn.text if len(turn.text) <= _TOLD else turn.text[:_TOLD] + " …"
    calls = tuple(ToolCall(call.id, call.name, call.arguments[:_TOLD]) for call in turn.tool_calls)
    if text is turn.text and calls == turn.tool_calls:
        return turn
    return replace(turn, text=text, tool_calls=calls, tokens=tokens.of_turn(text, calls))


def _fitting(turns: Sequence[Turn], room: int) -> list[Turn]:
    left = room - tokens.count(instructions()) - _AROUND
    kept: list[Turn] = []
    for turn in reversed(turns):
        left -= batches.cost(turn)
        if left < 0 and kept:
            break
        kept.append(turn)
    return kept[::-1]


def _draft(item: Item) -> Draft | None:
    """An item as a note; None where it is not of the form, or longer than a note may be."""
    body = _lines(item.get("body"))
    title = " ".join(str(item.get("title") or "").split())
    kind = next((one for one in NoteKind if one == str(item.get("kind") or "procedure").strip().lower()), None)
    if kind is None or not title or not _LEAST_BODY <= len(body) <= LONGEST_BODY or len(title) > LONGEST_TITLE:
        return None
    said = item.get("tags")
    tags = folded_tags(tag for tag in (said if isinstance(said, list) else ()) if isinstance(tag, str))
    return Draft(kind, title, body, tuple(tag for tag in tags if len(tag) <= LONGEST_TAG)[:MOST_TAGS])


def _lines(body: Any) -> str:
    """A body; some models make its steps a list."""
    if isinstance(body, list) and all(isinstance(step, str) for step in body):
        return "\n".join(f"{number}. {step.strip()}" for number, step in enumerate(body, 1))
    return body.strip() if isinstance(body, str) else ""


def _says_again(body: str) -> bool:
    lines = [re.sub(r"^[\d.)\s-]+", "", line).strip() for line in body.splitlines() if line.strip()]
    return len(lines) >= 6 and len(lines) >= 3 * len(set(lines))
