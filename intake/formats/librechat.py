"""LibreChat's export: messages that name their parent, in a row or nested."""

from collections.abc import Mapping
from typing import Any

from intake.formats.draft import Draft, own_id
from intake.formats.instant import instant_in
from intake.formats.tree import Node, main_branch


def drafts(document: Any) -> list[Draft] | None:
    """The chat of one exported conversation, along the branch spoken last; None for any other shape."""
    messages = document.get("messages") if isinstance(document, Mapping) else None
    if not isinstance(messages, list) or not messages or not _is_ours(messages[0]):
        return None
    ours, odd = _flat(messages)
    chat_id = own_id(document, ("conversationId", "id"))
    if document.get("branches") is False and document.get("recursive") is False:
        return [Draft(chat_id, [*map(_message, ours.values()), *odd])]
    branch, left_out = main_branch({key: _node(message) for key, message in ours.items()}, None)
    return [Draft(chat_id, [*branch, *odd], left_out=left_out)]


def _is_ours(message: Any) -> bool:
    return isinstance(message, Mapping) and "messageId" in message and "isCreatedByUser" in message


def _flat(messages: list[Any]) -> tuple[dict[str, Mapping[str, Any]], list[Any]]:
    """The messages by their ids, in the order of the file, and what is none or has the id of another."""
    ours: dict[str, Mapping[str, Any]] = {}
    odd: list[Any] = []
    waiting = list(reversed(messages))
    while waiting:
        message = waiting.pop()
        if not _is_ours(message) or str(message["messageId"]) in ours:
            odd.append(message)
            continue
        ours[str(message["messageId"])] = message
        if isinstance(children := message.get("children"), list):
            waiting.extend(reversed(children))
    return ours, odd


def _node(message: Mapping[str, Any]) -> Node:
    return Node(str(message.get("parentMessageId")), _message(message), instant_in(message))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": message["messageId"],
        "role": "user" if message["isCreatedByUser"] else "assistant",
        "content": message.get("text") or message.get("content"),
        "createdAt": message.get("createdAt"),
    }
