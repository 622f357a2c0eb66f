"""What a model server can do to one request: well-formed answers, and the ways of going wrong seen in real ones."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One chat completion request. `at` is in seconds of the event loop's clock; `headers` have lower-case names."""

    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0

    @property
    def system(self) -> str:
        return self._content("system")

    @property
    def user(self) -> str:
        """The raw user message: the prompt's data."""
        return self._content("user")

    @property
    def response_format(self) -> str:
        """json_schema, json_object, or text where none is asked for."""
        return str((self.body.get("response_format") or {}).get("type", "text"))

    def _content(self, role: str) -> str:
        return next((str(said["content"]) for said in self.body.get("messages", []) if said.get("role") == role), "")


@dataclass(frozen=True, slots=True)
class Mood:
    """What some behaviours take: `seconds` of slowness, and a Retry-After as it goes on the wire."""

    seconds: float = 1.0
    retry_after: str = "1"


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer and how it leaves: after `delay` seconds, `drip` seconds between pieces, cut at `cut` bytes.

    With `hangs` nothing is ever sent.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    drip: float = 0.0
    cut: int | None = None
    hangs: bool = False


# A behaviour gets the request, the text that a good answer would carry, and the mood.
Behaviour = Callable[[Asked, str, Mood], Reply]


def completion(asked: Asked, content: Any, *, finish: str = "stop", **message: Any) -> Reply:
    """A chat completion as the protocol has it, its usage counted roughly, at four characters a token."""
    told = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.body.get("model", "scripted"),
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": _usage(asked, content),
    }
    return Reply(json.dumps(told).encode())


def error(status: int, code: str, message: str, *headers: tuple[str, str]) -> Reply:
    told = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Reply(json.dumps(told).encode(), status=status, headers=headers)


def _usage(asked: Asked, content: Any) -> dict[str, Any]:
    read, written = len(asked.system + asked.user) // 4, len(str(content or "")) // 4
    cached = {"cached_tokens": len(asked.system) // 4}
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": cached,
    }


def _good(asked: Asked, text: str, _: Mood) -> Reply:
    return completion(asked, text)


def _slow(asked: Asked, text: str, mood: Mood) -> Reply:
    return Reply(completion(asked, text).body, delay=mood.seconds)


def _dripping(asked: Asked, text: str, mood: Mood) -> Reply:
    return Reply(completion(asked, text).body, drip=mood.seconds)


def _dropped(asked: Asked, text: str, _: Mood) -> Reply:
    whole = completion(asked, text).body
    return Reply(whole, cut=len(whole) // 2)


def _wrong_type(asked: Asked, text: str, _: Mood) -> Reply:
    return Reply(completion(asked, text).body, content_type="text/html; charset=latin-1")


def _compressed(asked: Asked, text: str, _: Mood) -> Reply:
    return Reply(gzip.compress(completion(asked, text).body), headers=(("content-encoding", "gzip"),))


def _huge(asked: Asked, _: str, __: Mood) -> Reply:
    return completion(asked, "a" * 8_000_000)


def _rate_limited(_: Asked, __: str, mood: Mood) -> Reply:
    return error(429, "rate_limit_exceeded", "slow down", ("retry-after", mood.retry_after))


def _unavailable(_: Asked, __: str, mood: Mood) -> Reply:
    return error(503, "overloaded", "try later", ("retry-after", mood.retry_after))


def _context_too_long(asked: Asked, _: str, __: Mood) -> Reply:
    # Real servers quote what they were sent; nothing of it may end in a log.
    return error(400, "context_length_exceeded", f"maximum context length exceeded by: {asked.user}")


def _moved(_: Asked, __: str, ___: Mood) -> Reply:
    return Reply(status=307, headers=(("location", "http://127.0.0.1:9/elsewhere"),))


def _no_json_schema(asked: Asked, text: str, _: Mood) -> Reply:
    if asked.response_format == "json_schema":
        return error(500, "internal_error", "response_format.type: Input should be 'text' or 'json_object'")
    return completion(asked, text)


def _no_schema_beside(asked: Asked, text: str, mood: Mood) -> Reply:
    if "schema" in asked.body.get("response_format", {}):
        return error(400, "unknown_parameter", "Unknown parameter: 'response_format.schema'.")
    return _no_json_schema(asked, text, mood)


def _no_formats(asked: Asked, text: str, _: Mood) -> Reply:
    if "response_format" in asked.body:
        return error(400, "bad_request", "this server takes no such field")
    return completion(asked, f"```json\n{text}\n```")


def _no_max_tokens(asked: Asked, text: str, _: Mood) -> Reply:
    if "max_tokens" in asked.body:
        return error(400, "unsupported_parameter", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    if "temperature" in asked.body:
        return error(400, "unsupported_value", "Unsupported value: 'temperature' does not support 0 with this model.")
    return completion(asked, text)


def _always(reply: Reply) -> Behaviour:
    return lambda _asked, _text, _mood: reply


def _says(change: Callable[[str], Any], *, finish: str = "stop", **message: Any) -> Behaviour:
    return lambda asked, text, _mood: completion(asked, change(text), finish=finish, **message)


_HTML = b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"

BEHAVIOURS: Mapping[str, Behaviour] = {
    "good": _good,
    "slow": _slow,
    "dripping": _dripping,
    "hanging": _always(Reply(hangs=True)),
    "dropped": _dropped,
    "closed": _always(Reply(b"never sent", cut=-1)),
    # the content is off
    "fenced": _says(lambda text: f"```json\n{text}\n```"),
    "prose": _says(lambda text: f"Sure! Here is the JSON that you asked for:\n\n{text}\n\nLet me know if it helps."),
    "truncated": _says(lambda text: text[: len(text) // 2], finish="length"),
    "loop": _says(lambda _: "remember " * 2_000, finish="length"),
    "babble": _says(lambda _: "I have thought about it for a while and there is much to be said on the matter."),
    "empty": _says(lambda _: ""),
    "null_content": _says(lambda _: None),
    "exhausted": _says(lambda _: "", finish="length"),
    "in_parts": _says(lambda text: [{"type": "text", "text": text}]),
    "half_characters": _says(lambda _: '{"observations": "\ud800"}'),
    "refusal": _says(lambda _: None, refusal="I cannot help with that."),
    "filtered": _says(lambda _: "", finish="content_filter"),
    # the reply is off
    "garbage": _always(Reply(b"\x00\xff\xfe{not json" * 20)),
    "no_choices": _always(Reply(b'{"object": "chat.completion", "choices": []}')),
    "odd_json": _always(Reply(b'["a", {"choices": 3}]')),
    "deep_json": _always(Reply(b"[" * 200_000)),
    "html": _always(Reply(_HTML, content_type="text/html")),
    "html_error": _always(Reply(_HTML, status=502, content_type="text/html")),
    "error_in_200": _always(Reply(b'{"error": {"message": "upstream", "code": 429}}')),
    "wrong_type": _wrong_type,
    "compressed": _compressed,
    "huge": _huge,
    "moved": _moved,
    # the server says no
    "rate_limited": _rate_limited,
    "unavailable": _unavailable,
    "server_error": _always(error(500, "server_error", "something broke")),
    "bad_request": _always(error(400, "invalid_value", "no")),
    "unauthorized": _always(error(401, "invalid_api_key", "Incorrect API key provided")),
    "forbidden": _always(error(403, "permission_denied", "no access to this model")),
    "no_such_model": _always(error(404, "model_not_found", "The model does not exist")),
    "context_too_long": _context_too_long,
    "too_large": _always(error(413, "payload_too_large", "Payload too large")),
    "policy": _always(error(400, "content_policy_violation", "no")),
    "gateway_timeout": _always(Reply(b"upstream request timeout", status=504, content_type="text/plain")),
    # the server speaks an older or a newer protocol
    "no_json_schema": _no_json_schema,
    "no_schema_beside": _no_schema_beside,
    "no_formats": _no_formats,
    "no_max_tokens": _no_max_tokens,
}
