"""One chat as a file tells it, before its messages are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_ID_KEYS = (
    "id",
    "conversation_id",
    "conversationId",
    "session_id",
    "sessionId",
    "thread_id",
    "chat_id",
    "dialogue_id",
    "dialog_id",
    "sample_id",
    "uuid",
    "task_id",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """`id` is the file's own, where it has one. `messages` are in order, in any shape that `retell` knows.
    `started_at` is when the chat began; `left_out` counts messages on branches that the chat did not go on with."""

    id: str | int | None
    messages: Sequence[Any]
    started_at: datetime | None = None
    left_out: int = 0


def own_id(told: Mapping[str, Any], keys: Sequence[str] = _ID_KEYS) -> str | int | None:
    """The first of `keys` that holds an id."""
    for key in keys:
        value = told.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return value
    return None
