"""ChatGPT's export: a tree of messages with a pointer to where the chat stands."""

from collections.abc import Mapping
from typing import Any

from intake.formats.draft import Draft, own_id
from intake.formats.instant import instant_in, instant_of
from intake.formats.tree import Node, main_branch

_IDS = ("conversation_id", "id")
_ATTACHED = {"image": "[image]", "audio": "[audio]", "video": "[video]"}


def drafts(document: Any) -> list[Draft] | None:
    """The chat of one exported conversation, along its current branch; None for any other shape."""
    if not isinstance(document, Mapping) or not isinstance(document.get("mapping"), Mapping):
        return None
    nodes = {key: _node(value) for key, value in document["mapping"].items() if isinstance(value, Mapping)}
    current = document.get("current_node")
    messages, left_out = main_branch(nodes, current if isinstance(current, str) else None)
    return [Draft(own_id(document, _IDS), _linked(messages), instant_in(document), left_out)]


def _node(value: Mapping[str, Any]) -> Node:
    parent = value.get("parent")
    message = value.get("message")
    told = _message(message) if isinstance(message, Mapping) else None
    said_at = instant_of(message.get("create_time")) if isinstance(message, Mapping) else None
    return Node(parent if isinstance(parent, str) else None, told, said_at)


def _message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """In the OpenAI shape; None for what nobody said: empty prompts, thoughts, settings."""
    author = message.get("author")
    content = message.get("content")
    if not isinstance(author, Mapping) or not isinstance(content, Mapping):
        return None
    told = {
        "id": message.get("id"),
        "role": author.get("role"),
        "name": author.get("name"),
        "create_time": message.get("create_time"),
    }
    text = _text(content)
    recipient = message.get("recipient")
    if told["role"] == "assistant" and isinstance(recipient, str) and recipient != "all":
        call = {"id": message.get("id"), "name": recipient, "arguments": text}
        return told | {"content": None, "tool_calls": [call]}
    return told | {"content": text} if text else None


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(filter(None, map(_part, parts)))
    said = [content.get(key) for key in ("title", "text", "result")]
    return "\n".join(text for text in said if isinstance(text, str) and text)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(text := part.get("text"), str):
        return text
    kind = part.get("content_type")
    return _ATTACHED.get(kind.split("_")[0], "[file]") if isinstance(kind, str) else ""


def _linked(messages: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The export does not say which call a tool answers: it is the one before."""
    linked: list[Mapping[str, Any]] = []
    call = None
    for message in messages:
        if message.get("tool_calls"):
            call = message["tool_calls"][0]["id"]
        linked.append({**message, "tool_call_id": call} if message["role"] == "tool" else message)
    return linked
