"""Validation errors as path and reason, built from the schema alone: pydantic's own messages may quote the input."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TAKES: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "takes a string",
    "string_unicode": "takes a string of Unicode characters",
    "string_too_short": "takes at least {min_length} characters",
    "string_too_long": "takes at most {max_length} characters",
    "string_pattern_mismatch": "takes what matches {pattern}",
    "literal_error": "takes {expected}",
    "int_type": "takes a whole number",
    "int_parsing": "takes a whole number",
    "int_parsing_size": "takes a smaller number",
    "greater_than_equal": "takes {ge} or more",
    "less_than_equal": "takes {le} or less",
    "bool_type": "takes true or false",
    "list_type": "takes a list",
    "too_short": "takes at least {min_length}",
    "too_long": "takes at most {max_length}",
    "dict_type": "takes an object",
    "model_type": "takes an object",
    "model_attributes_type": "takes an object",
}

_OURS = "takes "  # how a validator of ours begins what it refuses; it quotes nothing


def errors_of(errors: Iterable[Mapping[str, Any]], *place: str) -> list[tuple[str, str]]:
    """Each error's path (`turns[0].role`; other places than the body are named: `query.limit`) and what is taken.

    `place` is where they were found, where their own locations do not say it.
    """
    return [(_path((*place, *one["loc"])), _why(one)) for one in errors]


def _path(location: Sequence[str | int]) -> str:
    place, *steps = location
    if not steps:
        return str(place)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".") if place == "body" else f"{place}{path}"


def _why(error: Mapping[str, Any]) -> str:
    # What a schema names is ours, and what our own validators take; what else a message says may be theirs.
    if error["type"] == "value_error" and (said := str(error.get("ctx", {}).get("error"))).startswith(_OURS):
        return said
    return _TAKES.get(error["type"], "is not taken").format(**error.get("ctx", {}))
