"""The parts of a message in other vendors' words, in the words that `content.said_in` takes."""

from collections.abc import Mapping
from typing import Any


def is_part(part: Any, kinds: frozenset[str]) -> bool:
    """Whether `part` is a part of one of these kinds."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and kind in kinds


def openai_parts(content: Any) -> Any:
    """`content` with its parts in known words. What is neither text nor parts comes back as it is, to be refused."""
    if isinstance(content, Mapping):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    if not isinstance(content, list):
        return content
    return [known for part in content for known in (_known(part) if isinstance(part, Mapping) else [part])]


def _known(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    kind = part.get("type")
    if kind == "tool_call" and isinstance(call := part.get("tool_call"), Mapping):
        return _call_with_output(call)
    if kind == "function" and "function" in part:
        return [{**part, "type": "tool_call"}]
    if kind is None:
        return [_gemini(part)]
    return [part]


def _call_with_output(call: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    known: list[Mapping[str, Any]] = [{**call, "type": "tool_call"}]
    if call.get("output"):
        known.append({"type": "tool_result", "tool_use_id": call.get("id"), "content": call["output"]})
    return known


def _gemini(part: Mapping[str, Any]) -> Mapping[str, Any]:
    for key, value in part.items():
        if not isinstance(value, Mapping):
            continue
        if key in ("function_call", "functionCall"):
            return {**value, "type": "tool_call"}
        if key in ("function_response", "functionResponse"):
            answered = value.get("id") or value.get("name")
            return {"type": "tool_result", "tool_use_id": answered, "content": value.get("response")}
        if key in ("inline_data", "inlineData", "file_data", "fileData"):
            return {"type": _kind_of(value.get("mime_type") or value.get("mimeType"))}
    return part


def _kind_of(mime_type: Any) -> str:
    kind = mime_type.split("/")[0] if isinstance(mime_type, str) else ""
    return kind if kind in ("image", "audio", "video") else "file"
