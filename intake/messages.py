"""One chat message, as an OpenAI-style API carries it, read into the shape of a turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from intake.content import Said, called, id_text, said_in
from intake.kept_text import kept, kept_id, storable
from intake.refusals import InvalidMessage, TooLarge
from intake.rfc3339 import instant_from
from memory.turn import Role, ToolCall

__all__ = ["InvalidMessage", "Limits", "Message", "TooLarge", "read"]

# Wide enough for any archive; narrow enough that no time zone carries a time past what a database keeps.
EARLIEST_YEAR, LATEST_YEAR = 1900, 2199

_ROLES = {str(role): role for role in Role} | {"function": Role.TOOL}
_CARRIERS = ("content", "tool_calls", "function_call", "refusal", "audio")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is taken: bytes of a request's body, turns of one call, UTF-8 bytes of one turn's text and tool calls,
    characters of one id or name."""

    body_bytes: int = 1 << 20
    turns: int = 500
    turn_bytes: int = 256 << 10
    id_chars: int = 512


@dataclass(frozen=True, slots=True)
class Message:
    """What is kept of one message. The text is not masked yet: it stays in memory.

    `said_at` is aware and keeps the offset it was told in. No string holds a NUL or a lone surrogate.
    """

    role: Role
    text: str
    said_at: datetime | None
    id: str | None
    name: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None


def read(raw: Any, limits: Limits) -> Message:
    """Read one message. Whatever else it carries is kept out.

    Raises InvalidMessage with the path inside the message, or TooLarge for `turn_bytes`.
    """
    if not isinstance(raw, Mapping):
        raise InvalidMessage("", "takes an object")
    role = _role(raw.get("role"))
    said = _said(raw)
    if said.results and not said.texts and role is Role.USER:
        role = Role.TOOL  # some APIs hand tool results in under the user's role
    message = Message(
        role=role,
        text=_text(said, role),
        said_at=_instant(raw.get("at")),
        id=_id(raw.get("id"), limits),
        name=_name(raw.get("name"), limits),
        tool_calls=_tool_calls(raw, said, limits) if role is Role.ASSISTANT else (),
        tool_call_id=_answered_call(raw, said, limits) if role is Role.TOOL else None,
    )
    _check_size(message, limits)
    return message


def _role(word: Any) -> Role:
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise InvalidMessage("role", "takes user, assistant, system, developer or tool")
    return role


def _said(raw: Mapping[str, Any]) -> Said:
    said = said_in(raw.get("content"))
    if said.texts or said.calls or said.results:
        return said
    if all(carrier not in raw for carrier in _CARRIERS):
        raise InvalidMessage("content", "is missing")
    if isinstance(refusal := raw.get("refusal"), str) and refusal:
        said.texts.append(kept(refusal))
    elif isinstance(audio := raw.get("audio"), Mapping):
        transcript = audio.get("transcript")
        said.texts.append(f"[audio] {kept(transcript)}" if isinstance(transcript, str) and transcript else "[audio]")
    return said


def _text(said: Said, role: Role) -> str:
    if not said.results:
        return said.texts[0] if len(said.texts) == 1 else "\n".join(said.texts)
    if role is Role.TOOL:
        return "\n".join(said.texts + said.results)
    # What a tool returned must not pass for the words of whoever speaks beside it.
    return "\n".join([*said.texts, "[tool result]"])


def _instant(at: Any) -> datetime | None:
    if at is None:
        return None
    if not isinstance(at, str):
        raise InvalidMessage("at", "takes a time as RFC 3339 writes it, in a string")
    try:
        instant = instant_from(at)
    except (ValueError, OverflowError):
        raise InvalidMessage("at", "takes a time as RFC 3339 writes it: 2026-03-02T10:15:00+01:00") from None
    offset = instant.utcoffset()
    if offset is None or offset % timedelta(minutes=1):
        raise InvalidMessage("at", "takes a time with its offset from UTC: Z or +hh:mm")
    if not EARLIEST_YEAR <= instant.year <= LATEST_YEAR:
        raise InvalidMessage("at", f"takes a year from {EARLIEST_YEAR} to {LATEST_YEAR}")
    return instant


def _id(value: Any, limits: Limits) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):  # 7 and "7" are two ids for some, and one for others: the caller says which
        raise InvalidMessage("id", "takes a string")
    if not value:
        raise InvalidMessage("id", "takes no empty string")
    return kept_id(_short(value, "id", limits))


def _short(text: str, path: str, limits: Limits) -> str:
    if len(text) > limits.id_chars:
        raise InvalidMessage(path, f"takes at most {limits.id_chars} characters")
    return text


def _name(value: Any, limits: Limits) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidMessage("name", "takes a string")
    return _short(storable(value), "name", limits) or None


def _tool_calls(raw: Mapping[str, Any], said: Said, limits: Limits) -> tuple[ToolCall, ...]:
    listed = raw.get("tool_calls")
    if listed is not None and not isinstance(listed, list):
        raise InvalidMessage("tool_calls", "takes a list")
    calls = [called(call, f"tool_calls[{index}]") for index, call in enumerate(listed or ())]
    legacy = raw.get("function_call")
    if not calls and isinstance(legacy, Mapping) and legacy.get("name"):
        calls.append(called(legacy, "function_call"))
    known = {call.id for call in calls}
    calls.extend(call for call in said.calls if call.id not in known)
    for index, call in enumerate(calls):
        _short(call.id, f"tool_calls[{index}].id", limits)
        _short(call.name, f"tool_calls[{index}].function.name", limits)
    return tuple(calls)


def _answered_call(raw: Mapping[str, Any], said: Said, limits: Limits) -> str | None:
    answered = raw.get("tool_call_id")
    if answered is None:
        answered = said.result_id
    if answered is None and raw.get("role") == "function":
        answered = raw.get("name")
    return _short(id_text(answered, "tool_call_id"), "tool_call_id", limits) or None


def _check_size(message: Message, limits: Limits) -> None:
    size = _utf8_bytes(message.text)
    for call in message.tool_calls:
        size += _utf8_bytes(call.id) + _utf8_bytes(call.name) + _utf8_bytes(call.arguments)
    if size > limits.turn_bytes:
        raise TooLarge("turn_bytes", limits.turn_bytes)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
