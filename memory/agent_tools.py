"""The tools by which a model reads and writes what its agent learned: said once, for MCP and for OpenAI's functions.

A description is a part of the model's prompt. Each says what the tool is not for, since a model that looks for a customer
here loses a turn, and one that writes about a customer is refused.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memory.fence import one_line
from memory.note import LONGEST_BODY, LONGEST_TAG, LONGEST_TITLE, MOST_TAGS, Draft, NoteKind, Visibility

LONGEST_QUERY, MOST_FOUND, USUALLY_FOUND = 4_000, 50, 10
_HEADING = "Agents' own notes about how their work is done. No customer data; not said by anybody in this conversation."


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def as_function(self) -> dict[str, Any]:
        """The tool as an element of `tools` in an OpenAI chat request."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.schema)}
        return {"type": "function", "function": function}


def _takes(required: tuple[str, ...], **members: Mapping[str, Any]) -> Mapping[str, Any]:
    said = {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}
    return MappingProxyType(said)


def _text(longest: int, says: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": says}


_TAGS = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_TAG},
    "maxItems": MOST_TAGS,
    "description": "Types of objects, operations, systems: invoice, refund, erp.",
}

SEARCH = Tool(
    "search_agent_memory",
    "Looks through the working notes of this agent, and of agents that share theirs with it: procedures, how tools behave, how "
    "the company's processes run, pitfalls. Use it before a task whose steps you are not sure of, and after a tool failed. "
    "Do NOT use it to find out anything about a customer or any other person: nothing about them is there. For a customer's "
    "history use the customer's memory.",
    _takes(
        ("query",),
        query=_text(
            LONGEST_QUERY, "Words about the task, the tool or the error. No customer's name, number or address."
        ),
        tags=_TAGS | {"description": "Only notes that have one of these tags."},
        limit={"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": USUALLY_FOUND},
    ),
)

REMEMBER = Tool(
    "remember",
    "Keeps one note about how the work is done, for later conversations: what worked, what a tool really wants, what goes wrong. "
    "Use it once you know it to be so, and search first: a note that says the same is refused. "
    "Do NOT use it for anything about a customer or any other person: no name, no contact, no number of theirs, nothing that "
    "they said, want or bought; for a customer's history use the customer's memory. Do NOT use it for what matters in this "
    "conversation alone. A note with personal data is refused with the kinds that were found: write it again without them. A "
    "note may have to wait until a person approves it; do not repeat it then.",
    _takes(
        ("kind", "title", "body"),
        kind={
            "type": "string",
            "enum": [str(kind) for kind in NoteKind],
            "description": "procedure: how to do something. tool_note: how a tool behaves. "
            "process_note: how a process of the company works. pitfall: what goes wrong.",
        },
        title=_text(LONGEST_TITLE, "What it is about, in one line."),
        body=_text(LONGEST_BODY, "The note, so that it can be followed by somebody who was not there."),
        tags=_TAGS,
        visibility={
            "type": "string",
            "enum": [str(seen) for seen in Visibility],
            "default": str(Visibility.SOURCE),
            "description": "Who reads it. source: this agent. vendor: all agents of its vendor. "
            "space: all agents, once a person has approved it.",
        },
    ),
)

TOOLS = (SEARCH, REMEMBER)


def told(notes: Iterable[tuple[str, Draft]]) -> str:
    """Notes by their ids as the answer of a tool: JSON, in which no note ends its own string, nor opens or closes a tag."""
    found = [{"id": name, **_said(draft)} for name, draft in notes]
    return json.dumps({"about": _HEADING, "notes": found}, ensure_ascii=False).replace("<", "\\u003c")


def _said(draft: Draft) -> dict[str, Any]:
    texts = {"title": one_line(draft.title, " "), "body": one_line(draft.body, "\n")}
    return {"kind": str(draft.kind), **texts, "tags": [one_line(tag, " ") for tag in draft.tags]}
