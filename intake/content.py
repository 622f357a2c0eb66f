"""What a message says: the text, the calls and the tool results among the parts of its content."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intake.kept_text import kept, storable
from intake.refusals import InvalidMessage
from memory.turn import ToolCall

_MARKERS = {
    "image": "[image]",
    "image_url": "[image]",
    "image_file": "[image]",
    "input_image": "[image]",
    "audio": "[audio]",
    "audio_url": "[audio]",
    "input_audio": "[audio]",
    "output_audio": "[audio]",
    "video": "[video]",
    "video_url": "[video]",
    "input_video": "[video]",
    "file": "[file]",
    "file_url": "[file]",
    "input_file": "[file]",
    "document": "[file]",
    "document_url": "[file]",
}
CALLS = frozenset({"tool_use", "server_tool_use", "tool_call", "function_call"})
RESULTS = frozenset({"tool_result", "tool_call_response", "function_call_output"})
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
# What a model thinks on the way is not what it says.
_UNSAID = frozenset({"thinking", "redacted_thinking", "reasoning"})


@dataclass(slots=True)
class Said:
    """The parts of one content, sorted. `results` is what tools returned; `result_id` names the first call answered."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    result_id: Any = None


def said_in(content: Any) -> Said:
    """Sort what `content` says: a string, None or a list of parts, else InvalidMessage."""
    if content is None:
        return Said()
    if isinstance(content, str):
        return Said([kept(content)])
    if not isinstance(content, list):
        raise InvalidMessage("content", "takes a string, null or a list of parts")
    said = Said()
    for index, part in enumerate(content):
        _sort_part(part, f"content[{index}]", said)
    return said


def _sort_part(part: Any, path: str, said: Said) -> None:
    if isinstance(part, str):
        said.texts.append(kept(part))
        return
    kind = _kind(part, path)
    if kind in _MARKERS:
        said.texts.append(_MARKERS[kind])
    elif kind in CALLS:
        said.calls.append(called(part, path))
    elif kind in RESULTS:
        said.results.append(_result(part, path))
        said.result_id = said.result_id or part.get("tool_use_id") or part.get("call_id") or part.get("id")
    elif kind not in _UNSAID and (text := _text(part, kind, path)):
        said.texts.append(text)


def _kind(part: Any, path: str) -> str:
    if not isinstance(part, Mapping):
        raise InvalidMessage(path, "takes a part: an object with a type, or a string")
    kind = part.get("type")
    if kind is None:
        return next((key for key in part if key in _MARKERS), "text")
    if not isinstance(kind, str):
        raise InvalidMessage(f"{path}.type", "takes a string")
    return kind


def _text(part: Mapping[str, Any], kind: str, path: str) -> str:
    """The text of a part. A part of a kind that nobody knows says what its text says, or nothing."""
    for key in ("text", "refusal", "content"):
        text = part.get(key)
        if isinstance(text, Mapping):  # the Assistants API wraps the text together with its annotations
            text = text.get("value")
        if isinstance(text, str):
            return kept(text)
        if text is not None and kind in _TEXTS:
            raise InvalidMessage(f"{path}.{key}", "takes a string")
    return ""


def _result(part: Mapping[str, Any], path: str) -> str:
    for key in ("content", "output", "response"):
        content = part.get(key)
        if isinstance(content, list):
            texts = [_text_in_result(each, f"{path}.{key}[{index}]") for index, each in enumerate(content)]
            return "\n".join(filter(None, texts))
        if content is not None:
            return kept(as_json_text(content, f"{path}.{key}"))
    return ""


def _text_in_result(part: Any, path: str) -> str:
    if isinstance(part, str):
        return kept(part)
    kind = _kind(part, path)
    return _MARKERS.get(kind) or _text(part, kind, path)


def called(call: Any, path: str) -> ToolCall:
    """One tool call, in the OpenAI form or with its name and arguments laid flat. A call without an id is known by its
    name, as the legacy `function` role knows it."""
    if not isinstance(call, Mapping):
        raise InvalidMessage(path, "takes an object")
    function = call.get("function") or call.get("custom") or call
    if not isinstance(function, Mapping):
        raise InvalidMessage(f"{path}.function", "takes an object")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidMessage(f"{path}.function.name", "takes a string that is not empty")
    name = storable(name)
    call_id = id_text(call.get("call_id", call.get("id")), f"{path}.id")
    return ToolCall(id=call_id or name, name=name, arguments=_arguments(function, f"{path}.function"))


def id_text(value: Any, path: str) -> str:
    """An id as text: a string, a whole number, or None, which is the empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidMessage(path, "takes a string or a whole number")
    try:
        return str(value)
    except ValueError:  # Python writes out no number of more than 4,300 digits
        raise InvalidMessage(path, "takes a shorter number") from None


def _arguments(function: Mapping[str, Any], path: str) -> str:
    for key in ("arguments", "args", "input"):
        if (arguments := function.get(key)) is not None:
            return kept(as_json_text(arguments, f"{path}.{key}"))
    return "{}"


def as_json_text(value: Any, path: str) -> str:
    """`value` as it is when it is a string, else as JSON text."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise InvalidMessage(path, "takes JSON, not nested too deeply") from None
