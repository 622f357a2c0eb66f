"""One message as files tell it, told again in the OpenAI shape that `messages.read` takes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intake.content import CALLS, RESULTS, as_json_text
from intake.formats.draft import own_id
from intake.formats.instant import instant_in
from intake.formats.parts import is_part, openai_parts
from intake.refusals import InvalidMessage

_WORDS = {
    "user": "user human usr customer client visitor guest prompter seeker me",
    "assistant": "assistant ai aimessagechunk bot gpt chatgpt bard bing claude model sys chatbot agent wizard provider",
    "system": "system instructions",
    "developer": "developer",
    "tool": "tool function observation function_response function_call_output tool_response ipython",
}
_ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_CALL_WORDS = frozenset({"function_call", "tool_call"})

_WHO = ("role", "from", "sender", "author", "speaker", "type")
_WHAT = ("content", "value", "text", "parts", "message", "utterance")
_PAIRS = (("query", "response"), ("prompt", "completion"), ("prompt", "response"), ("question", "answer"))
_MESSAGE_IDS = ("id", "message_id", "messageId", "msg_id", "uuid", "dia_id")
_AS_THEY_ARE = ("function_call", "tool_call_id", "refusal", "audio")
_LONGEST_ID = 512


@dataclass(slots=True)
class Cast:
    """Who plays which part where speakers have names: the first is the user unless the chat has one already, and the
    others answer."""

    parts: dict[str, str] = field(default_factory=dict)

    def part_of(self, name: str) -> str:
        return self.parts.setdefault(name, "assistant" if "user" in self.parts.values() else "user")


def is_message(told: Any) -> bool:
    if not isinstance(told, Mapping):
        return False
    if told.get("type") in ("function_call", "function_call_output", "reasoning"):
        return True
    says = any(key in told for key in (*_WHAT, "tool_calls", "function_call", "data"))
    return says and _who(told) is not None


def is_pair(told: Any) -> bool:
    return isinstance(told, Mapping) and _pair(told) is not None


def retell(told: Any, cast: Cast) -> list[dict[str, Any]]:
    """`told` in the OpenAI shape: one message mostly; two for a question with its answer, one for each tool result,
    none for mere thinking. Raises InvalidMessage."""
    if isinstance(told, str):
        return [{"role": "user", "content": told}]
    if not isinstance(told, Mapping):
        raise InvalidMessage("", "takes an object or a string")
    if (pair := _pair(told)) and not is_message(told):
        said = [{"role": "user", "content": told[pair[0]]}, {"role": "assistant", "content": told[pair[1]]}]
        return [message | _circumstances(told) for message in said]
    if isinstance(data := told.get("data"), Mapping):  # as LangChain once wrote its messages
        told = {**told, **data}
    kind = told.get("type")
    if kind == "reasoning":
        return []
    if kind == "function_call":
        return [{"role": "assistant", "content": None, "tool_calls": [told], **_circumstances(told)}]
    if kind == "function_call_output":
        return [_tool_result(told) | _circumstances(told)]
    return _message(told, cast)


def _pair(told: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((pair for pair in _PAIRS if all(isinstance(told.get(key), str) for key in pair)), None)


def _message(told: Mapping[str, Any], cast: Cast) -> list[dict[str, Any]]:
    who = _who(told)
    if who is None:
        raise InvalidMessage("role", "names no part in a chat")
    role, name = _part(who, cast)
    base = _circumstances(told) | {key: told[key] for key in _AS_THEY_ARE if told.get(key) is not None}
    if isinstance(own_name := told.get("name"), str):
        name = own_name
    if calls := _calls_beside(told):
        base["tool_calls"] = calls
    if not any(key in told for key in (*_WHAT, *_AS_THEY_ARE)) and "tool_calls" not in base:
        raise InvalidMessage("content", "is missing")
    content = next((told[key] for key in _WHAT if told.get(key) is not None), None)
    if who in _CALL_WORDS:
        role, content = "assistant", [_written_call(content)]
    return _apart({"role": role, "name": name, **base}, content)


def _calls_beside(told: Mapping[str, Any]) -> Any:
    if told.get("tool_calls"):
        return told["tool_calls"]
    extra = told.get("additional_kwargs")
    if isinstance(extra, Mapping) and extra.get("tool_calls"):
        return extra["tool_calls"]
    return [told["tool_call"]] if isinstance(told.get("tool_call"), Mapping) else None


def _who(told: Mapping[str, Any]) -> str | None:
    """The word for who speaks. A `type` counts only where it is such a word."""
    for key in _WHO:
        word = told.get(key)
        if isinstance(word, Mapping):
            word = word.get("role") or word.get("name")
        if isinstance(word, str) and word and (key != "type" or word.lower() in _ROLES):
            return word if key != "role" or word.lower() in _ROLES or word in _CALL_WORDS else None
    return None


def _part(word: str, cast: Cast) -> tuple[str, str | None]:
    """The role that `word` means; a word that means none is a name."""
    role = _ROLES.get(word.lower())
    if role is None:
        return cast.part_of(word), word
    cast.parts.setdefault(f"role {role}", role)
    return role, None


def _circumstances(told: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    message_id = own_id(told, _MESSAGE_IDS)
    if message_id is not None and len(message_id := str(message_id)) <= _LONGEST_ID:
        found["id"] = message_id
    if (instant := instant_in(told)) is not None:
        found["at"] = instant.isoformat()
    return found


def _written_call(content: Any) -> Any:
    """A call that was written out as the text of a message: as a call where it can be read as one."""
    if not isinstance(content, str):
        return content
    try:
        call = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return {"type": "tool_call", **call} if isinstance(call, dict) and isinstance(call.get("name"), str) else content


def _apart(base: dict[str, Any], content: Any) -> list[dict[str, Any]]:
    """One message for what is said and called, and one for each tool result in it."""
    if base["role"] == "tool":
        content = _returned(content)
    parts = openai_parts(content)
    if not isinstance(parts, list):
        return [base | {"content": parts}]
    results = [part for part in parts if is_part(part, RESULTS)]
    said = [part for part in parts if not is_part(part, RESULTS)]
    calls = any(is_part(part, CALLS) for part in said)
    if calls:
        base["role"] = "assistant"
    told = [_tool_result(result) | {key: base[key] for key in ("id", "at") if key in base} for result in results]
    spoken = [base | {"content": said}] if said or not results else []
    return spoken + told if calls else told + spoken


def _returned(content: Any) -> Any:
    """What a tool returned: parts as they are, any other JSON as text."""
    listed = content if isinstance(content, list) else [content]
    if all(isinstance(part, str) or (isinstance(part, Mapping) and _speaks(part)) for part in listed):
        return content if isinstance(content, (str, list)) else [content]
    return None if content is None else as_json_text(content, "content")


def _speaks(part: Mapping[str, Any]) -> bool:
    return any(key in part for key in ("type", "text", "function_response", "functionResponse"))


def _tool_result(part: Mapping[str, Any]) -> dict[str, Any]:
    answered = next((part[key] for key in ("tool_use_id", "call_id", "id") if part.get(key) is not None), None)
    content = next((part[key] for key in ("content", "output", "response") if part.get(key) is not None), None)
    return {"role": "tool", "content": openai_parts(_returned(content)), "tool_call_id": answered}
