"""What a model server's HTTP answer means: a status and some bytes in, an Answer out. Pure; it trusts nothing."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memory.outcome import NOTHING_USED, Answer, Outcome, Usage

LONGEST_WAIT = 900.0  # seconds; a provider that names more is asked again then
_UNTIL_AN_OPERATOR_ACTS = 60.0  # seconds before a refused key or an unknown model is tried again


def read_completion(body: bytes) -> Answer:
    """The answer in a successful reply's body."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return Answer(Outcome.PROVIDER_ERROR, detail="200 whose body is no JSON")
    if not isinstance(told, dict):
        return Answer(Outcome.PROVIDER_ERROR, detail="200 whose body is no chat completion")
    if isinstance(told.get("error"), dict):
        return _read_wrapped_error(told["error"], body)
    if not isinstance(told.get("choices"), list):
        return Answer(Outcome.PROVIDER_ERROR, detail="200 whose body is no chat completion")
    return _read_choices(told["choices"], _usage(told.get("usage")))


def read_error(status: int, headers: Mapping[str, str], body: str, *, now: datetime) -> Answer:
    """The answer in an error reply. `headers` have lower-case names; `now` is aware."""
    code = _code(body)
    wait = retry_after(headers.get("retry-after"), now)
    detail = f"{status} {code}".strip()
    if status in _TOO_LONG_STATUSES and (status == _PAYLOAD_TOO_LARGE or _TOO_LONG.search(body)):
        return Answer(Outcome.OVER_LONG, detail=detail)
    if status in _BLAMES_THE_REQUEST and code in _FILTERED:
        return Answer(Outcome.REFUSAL, detail=detail)
    if status == _TOO_MANY_REQUESTS:
        return Answer(Outcome.RATE_LIMIT, retry_after=wait, detail=detail)
    if status in _TIMED_OUT:
        return Answer(Outcome.TIMEOUT, retry_after=wait, detail=detail)
    if status in _FOR_THE_OPERATOR:
        advice = f"{detail}: {_FOR_THE_OPERATOR[status]}"
        return Answer(Outcome.PROVIDER_ERROR, retry_after=wait or _UNTIL_AN_OPERATOR_ACTS, detail=advice)
    return Answer(Outcome.PROVIDER_ERROR, retry_after=wait, detail=detail)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds named by a Retry-After header, as a number or an HTTP date, between 0 and LONGEST_WAIT; None if neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now)
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)


_PAYLOAD_TOO_LARGE, _TOO_MANY_REQUESTS = 413, 429
_BLAMES_THE_REQUEST = frozenset({400, 403, 422})
_TOO_LONG_STATUSES = frozenset({400, _PAYLOAD_TOO_LARGE, 422, 500})
_TIMED_OUT = frozenset({408, 504})
_FILTERED = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
_TOO_LONG = re.compile(
    r"context_length_exceeded|context (length|window|size)|(prompt|input) is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_FOR_THE_OPERATOR = {
    401: "the model server refuses the API key; see AFTERTURN_MODEL_API_KEY",
    403: "the API key may not use this model; see AFTERTURN_MODEL_API_KEY and AFTERTURN_MEMORY_WORKER_MODEL",
    404: "no such model or address; see AFTERTURN_MEMORY_WORKER_MODEL and AFTERTURN_MODEL_BASE_URL",
    **dict.fromkeys(
        (301, 302, 303, 307, 308), "it points elsewhere, which is not followed; see AFTERTURN_MODEL_BASE_URL"
    ),
}


def _read_wrapped_error(error: Mapping[str, Any], body: bytes) -> Answer:
    # Routers answer 200 and put the status of the provider behind them into the body.
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 502
    return read_error(status, {}, body.decode(errors="replace"), now=datetime.now(UTC))


def _read_choices(choices: list[Any], usage: Usage) -> Answer:
    choice = choices[0] if choices else {}
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return Answer(Outcome.EMPTY, usage=usage, detail="no choice in the answer")
    finish = choice.get("finish_reason")
    return _read_message(message, finish if finish in _FINISHES else None, usage)


def _read_message(message: Mapping[str, Any], finish: str | None, usage: Usage) -> Answer:
    text = _whole(message.get("content"))
    if message.get("refusal"):
        return Answer(Outcome.REFUSAL, finish_reason=finish, usage=usage, detail="the model refused")
    if finish == "content_filter":
        return Answer(Outcome.REFUSAL, finish_reason=finish, usage=usage, detail="the provider's filter stepped in")
    if text.strip():
        return Answer(Outcome.OK, text=text, finish_reason=finish, usage=usage)
    if finish == "length":
        return Answer(Outcome.OVER_LONG, finish_reason=finish, usage=usage, detail="the output limit left no answer")
    return Answer(Outcome.EMPTY, finish_reason=finish, usage=usage, detail="an answer without text")


_FINISHES = frozenset({"stop", "length", "content_filter", "tool_calls", "function_call"})


def _whole(content: Any) -> str:
    """A content's text, with halves of characters made U+FFFD: neither a database nor a tokenizer takes them."""
    if isinstance(content, list):
        content = "".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if not isinstance(content, str):
        return ""
    return content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _usage(told: Any) -> Usage:
    if not isinstance(told, dict):
        return NOTHING_USED
    details = told.get("prompt_tokens_details")
    cached = _tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0
    read = _tokens(told.get("prompt_tokens"))
    return Usage(read, min(cached, read), _tokens(told.get("completion_tokens")))


def _tokens(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**31 else 0


def _code(body: str) -> str:
    """The error's code or type. Never its message: servers quote the prompt in it."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = told.get("error", told) if isinstance(told, dict) else None
    if not isinstance(error, dict):
        return ""
    names = (error.get("code"), error.get("type"))
    return next((name for name in names if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name)), "")


def _seconds_until(date: str, now: datetime) -> float:
    try:
        until = parsedate_to_datetime(date)
        return ((until if until.tzinfo else until.replace(tzinfo=UTC)) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):  # whatever a server puts there, it is no date
        return math.nan
