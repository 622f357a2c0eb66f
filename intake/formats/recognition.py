"""Which shape a document has."""

from collections.abc import Iterator, Mapping
from typing import Any

from intake.formats import chatgpt, chats, librechat, locomo, memorybank, traces
from intake.formats.draft import Draft, own_id

TAKEN = (
    "OpenAI messages (JSON or JSON Lines), ShareGPT, ChatGPT, LibreChat and chatbot-ui exports, LoCoMo and MemoryBank "
    "sessions, agent runs with their messages, Langfuse traces, and plain lists of strings"
)

_SHAPES = (chatgpt.drafts, librechat.drafts, locomo.drafts, memorybank.drafts, traces.drafts, chats.drafts)
_ENVELOPES = (
    "conversations",
    "history",
    "chats",
    "data",
    "dialogues",
    "samples",
    "results",
    "threads",
    "traces",
    "items",
)
_DEEPEST = 3


def drafts_in(document: Any, depth: int = _DEEPEST) -> list[Draft] | None:
    """The chats that one JSON value tells, looking into envelopes; None where no shape is known."""
    for shape in _SHAPES:
        if (drafts := shape(document)) is not None:
            return drafts
    if depth == 0:
        return None
    found = [draft for inner in _enclosed(document) for draft in drafts_in(inner, depth - 1) or ()]
    return found or None


def _enclosed(document: Any) -> Iterator[Any]:
    if isinstance(document, list):
        yield from document
    elif isinstance(document, Mapping):
        lists = [document[key] for key in _ENVELOPES if isinstance(document.get(key), list)]
        yield from lists[0] if lists else _by_id(document)


def _by_id(document: Mapping[str, Any]) -> Iterator[Any]:
    """Some files are an object of chats by their ids."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield value if own_id(value) is not None else {"id": key, **value}
