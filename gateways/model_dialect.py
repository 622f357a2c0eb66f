"""What one OpenAI-compatible server understands of a request, learned from its complaints. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from memory.outcome import Prompt


class Format(StrEnum):
    """How a server is told the shape of the answer, from the firmest to none at all."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT_WITH_SCHEMA = "json_object with a schema beside it"
    JSON_OBJECT = "json_object"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What has not been refused so far."""

    format: Format = Format.JSON_SCHEMA
    output_limit: str = "max_tokens"
    temperature: bool = True


def request_body(prompt: Prompt, dialect: Dialect, *, model: str, max_output_tokens: int) -> dict[str, Any]:
    """The JSON of a chat completion. Only system and user roles, only plain strings: what every server takes."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": _instructions(prompt, dialect.format)},
            {"role": "user", "content": prompt.data},
        ],
        dialect.output_limit: max_output_tokens,
    }
    if dialect.temperature:
        body["temperature"] = 0
    if (response_format := _response_format(prompt, dialect.format)) is not None:
        body["response_format"] = response_format
    return body


def concede(dialect: Dialect, status: int, complaint: str, *, proven: bool) -> Dialect | None:
    """The next dialect to try after an error answer; None where the complaint is not about the dialect.

    `proven` says that the dialect was understood before: then only a complaint that names a field counts, since an
    unspecific one is about the content.
    """
    if status not in _MISUNDERSTOOD:
        return None
    if _names_field(complaint, dialect.output_limit) and dialect.output_limit == "max_tokens":
        return replace(dialect, output_limit="max_completion_tokens")
    if _names_field(complaint, "temperature") and dialect.temperature:
        return replace(dialect, temperature=False)
    unspecific = status != _SERVER_FAULT and not proven
    if _ABOUT_FORMAT.search(complaint) or unspecific:
        return _looser(dialect)
    return None


_SERVER_FAULT = 500  # some servers answer so to a field that they do not know; any other fault of theirs as well
_MISUNDERSTOOD = frozenset({400, 422, _SERVER_FAULT, 501})
_ABOUT_FORMAT = re.compile(r"response_format|json_schema|json_object|structured.?output", re.IGNORECASE)
_REFUSES = re.compile(r"unsupported|not supported|unrecognized|unknown|not permitted|extra", re.IGNORECASE)


def _names_field(complaint: str, field: str) -> bool:
    return field in complaint and _REFUSES.search(complaint) is not None


def _looser(dialect: Dialect) -> Dialect | None:
    formats = list(Format)
    place = formats.index(dialect.format) + 1
    return replace(dialect, format=formats[place]) if place < len(formats) else None


def _instructions(prompt: Prompt, form: Format) -> str:
    if form is Format.JSON_SCHEMA:
        return prompt.instructions
    return f"{prompt.instructions}\n\nAnswer with one JSON object of this JSON schema, and nothing else:\n{_compact(prompt.schema)}"


def _response_format(prompt: Prompt, form: Format) -> dict[str, Any] | None:
    schema = dict(prompt.schema)
    match form:
        case Format.JSON_SCHEMA:
            named = {"name": prompt.schema_name, "strict": True, "schema": schema}
            return {"type": "json_schema", "json_schema": named}
        case Format.JSON_OBJECT_WITH_SCHEMA:
            return {"type": "json_object", "schema": schema}
        case Format.JSON_OBJECT:
            return {"type": "json_object"}
        case Format.TEXT:
            return None


def _compact(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
