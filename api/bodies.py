"""Reading a request's body: bounded while it arrives, then parsed once, as forgivingly as JSON can be."""

import json
from typing import Any, NoReturn

import pydantic_core
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from api.problems import Problem, too_large


async def read_json(request: Request, limit: int) -> tuple[bytes, Any]:
    """The body and what it says; 415 for another type, 413 past `limit` bytes, 400 for what is no JSON."""
    _check_type(request.headers)
    if _announced(request.headers) > limit:
        raise too_large("body_bytes", limit)
    body = await _read(request, limit)
    return body, _parse(body) if body else None


def _check_type(headers: Headers) -> None:
    """JSON by its name; a request that names no type is taken at its word."""
    named = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if named != "application/json" and not (named.startswith("application/") and named.endswith("+json")):
        raise Problem(415, "unsupported_media_type", "The body is taken as application/json")


def _announced(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    # Python reads no number of thousands of digits, and a few tell enough.
    return int(length[:18]) if length.isdecimal() else 0


async def _read(request: Request, limit: int) -> bytes:
    arrived, comes_more = bytearray(), True
    while comes_more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        arrived += message.get("body", b"")
        if len(arrived) > limit:
            raise too_large("body_bytes", limit)
        comes_more = message.get("more_body", False)
    return bytes(arrived)


def _parse(body: bytes) -> Any:
    try:
        return pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError:
        return _parse_gently(body)


def _parse_gently(body: bytes) -> Any:
    # A NUL, a raw control character or a lone surrogate inside a string breaks no chat; it is replaced further on.
    try:
        return json.loads(body.decode("utf-8", "surrogatepass"), strict=False, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Problem(400, "invalid_json", "The body is not JSON") from None


def _refuse(_: str) -> NoReturn:
    raise ValueError("NaN and infinities are no JSON")
