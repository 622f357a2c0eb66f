"""A turn as the thinking sees it: masked text, who spoke, when."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that an assistant turn made: its id, the function's name, its arguments as JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation, already masked.

    `said_at` is aware and keeps the offset in which the turn was spoken: relative dates are resolved against it.
    `tokens` counts `text` and the tool calls by o200k_base. `conversation` is a number that is equal for turns of
    one conversation. `name` is the speaker's name where the chat gave one.
    """

    id: int
    conversation: int
    role: Role
    text: str
    said_at: datetime
    tokens: int
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
