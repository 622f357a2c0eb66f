"""The OpenAPI document: what each route takes, answers and refuses. Tests are generated from it, so it must be true."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from intake.identity import CANONICAL, CHANNEL, END_USER, PLATFORM
from models.api_key import Scope

_REFUSALS = {
    400: "The body is not JSON, or the request not HTTP",
    401: "No API key, or none that lives",
    403: "The API key lacks the scope, which is named",
    404: "There is no such thing here",
    405: "This path does not take that method",
    408: "The request did not arrive in time",
    409: "The state of what is asked for does not allow it",
    412: "Another version or generation stands: nothing was stored",
    413: "Past a limit, which is named; nothing was kept",
    415: "The body is not application/json",
    429: "Too many within the hour: try again after Retry-After",
    422: "The request does not have the shape that is taken",
    431: "The request's first line and headers are larger than is taken",
    500: "Something broke on our side",
    503: "A store does not answer: try again",
}
_OF_A_BODY = (413, 415, 422)
_OF_EVERY_ROUTE = (400, 401, 403, 408, 431, 500, 503)

_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. It never repeats what the request said.",
    "required": ["type", "title", "status", "code", "instance"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Never changes: what programs go by."},
        "instance": {"type": "string", "format": "uri", "description": "Names this refusal, also in our logs."},
        "scope": {"type": "string", "description": "The scope that is missing (403)."},
        "limit": {"type": "string", "description": "The limit that was passed (409, 413, 429)."},
        "maximum": {"type": "integer", "description": "Its value (409, 413, 429)."},
        "kinds": {"type": "array", "items": {"type": "string"}, "description": "Kinds of personal data (422)."},
        "note": {"type": "string", "description": "The note that says the same (409)."},
        "errors": {
            "type": "array",
            "description": "Where the request is wrong, and what is taken there (422).",
            "items": {
                "type": "object",
                "required": ["path", "why"],
                "properties": {"path": {"type": "string"}, "why": {"type": "string"}},
            },
        },
    },
}

_BEARER = {"type": "http", "scheme": "bearer", "description": "The secret of an API key: at_…"}


@dataclass(frozen=True, slots=True)
class Header:
    """A request header that a route reads by hand, and its bounds in characters; `longest` 0: as long as a head may be."""

    name: str
    longest: int
    says: str
    pattern: str | None = None

    def parameter(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.pattern:
            schema["pattern"] = self.pattern
        elif self.longest:
            schema |= {"minLength": 1, "maxLength": self.longest}
        return {"name": self.name, "in": "header", "required": False, "schema": schema, "description": self.says}


_UNPRINTABLE = r"\x00-\x1f\x7f-\xa0\xad"
_COUNTS = "Counts only for a key that may impersonate; from any other it is ignored, and the answer says so."
# One that is empty is as good as none.
_HANDLE = f"^[^{_UNPRINTABLE}]{{0,512}}$"
_SENDER = f"^(?:[^:{_UNPRINTABLE}]*[^: {_UNPRINTABLE}]:[^{_UNPRINTABLE}]*[^ {_UNPRINTABLE}])?$"
_IDENTITY = [
    Header(CANONICAL, 512, _COUNTS, pattern=_HANDLE),
    Header(END_USER, 512, _COUNTS, pattern=_HANDLE),
    Header(CHANNEL, 512, f"type:id. {_COUNTS}", pattern=_SENDER),
    Header(PLATFORM, 0, "Of older clients. It names nobody, and the answer says that it was ignored."),
]


class Documented(FastAPI):
    """A FastAPI application whose document knows problems and keys."""

    def openapi(self) -> dict[str, Any]:
        known = self.openapi_schema
        document = super().openapi()
        if document is not known:
            components = document.setdefault("components", {})
            components.setdefault("schemas", {})["Problem"] = _PROBLEM
            components["securitySchemes"] = {"bearer": _BEARER}
        return document

    def methods(self, path: str) -> list[str]:
        """Every method that a path takes; none where there is no such path."""
        paths = self.openapi()["paths"]
        found: dict[str, Any] = paths.get(path) or next(
            (of for form, of in paths.items() if _form(form).fullmatch(path)), {}
        )
        return sorted(method.upper() for method in found)


def _form(path: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(map(re.escape, re.split(r"\{[^}]+\}", path))))


def opens(
    scope: Scope,
    *statuses: int,
    body: bool | type[BaseModel] = True,
    of_a_person: bool = True,
    headers: Sequence[Header] = (),
) -> dict[str, Any]:
    """What a route's decorator takes besides its path: the scope that it needs, and the refusals that it can answer.

    `body` is a model where the endpoint reads the body itself, then FastAPI cannot see it; False where there is none.
    """
    known = {*_OF_EVERY_ROUTE, *(_OF_A_BODY if body else ()), *((404, 422) if of_a_person else ()), *statuses}
    identity = _IDENTITY if of_a_person else []
    extra: dict[str, Any] = {
        "security": [{"bearer": [str(scope)]}],
        "parameters": [header.parameter() for header in (*headers, *identity)],
    }
    if isinstance(body, type):
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": body.model_json_schema()}}}
    return {"openapi_extra": extra, "responses": {status: _refusal(status) for status in sorted(known)}}


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": _REFUSALS[status], "content": {"application/problem+json": {"schema": schema}}}
