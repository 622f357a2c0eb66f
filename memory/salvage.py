"""JSON objects out of whatever a model wrote around, inside and instead of them; complete ones only.

json-repair closes what was cut off, invents what is missing and takes quadratic time on some inputs. So complete
objects are found here first, in one pass, and only a short one that will not parse is handed to it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import json_repair

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.DOTALL)
_FULL_WIDTH = str.maketrans("：，｛｝［］", ":,{}[]")
_AROUND = "\ufeff\u200b \t\r\n"
_REPAIRABLE = 4_000  # characters: an object of one observation is far shorter
_FAILURES = 8  # repairs in vain after which no more are tried
_DEPTH = 3  # wrappers around a list of objects
_CLOSING = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“”", "‘": "’", "«": "»"}
_BEFORE_STRING = frozenset("{[(,:：，")
_AFTER_STRING = frozenset("}]),:：，")


_MARKS = re.compile(r"\\.|[\"'“”„‘’«»{}｛｝]", re.DOTALL)


@dataclass(slots=True)
class _Open:
    """A brace that waits for its end, and the complete objects inside it so far."""

    start: int
    inside: list[tuple[int, int]] = field(default_factory=list)


def values(text: str) -> tuple[list[Any], bool]:
    """The JSON values in `text` in order, and whether `text` is cut off in the middle of one."""
    whole = _loaded(text)
    if whole is not None:
        return [whole], False
    answer = _THOUGHT.sub("", text)
    bare = _loaded(_unfenced(answer))
    if bare is not None:
        return [bare], False
    found, cut_off = _complete(answer)
    return list(_parsed(answer, found)), cut_off


def _unfenced(text: str) -> str:
    inside = text.strip(_AROUND).removeprefix("```").removesuffix("```")
    return re.sub(r"\A\w+\s*(?=[\[{])", "", inside)


def _loaded(text: str) -> Any:
    try:
        value = json.loads(text.strip(_AROUND), strict=False)
        return json.loads(value, strict=False) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _parsed(text: str, spans: list[tuple[int, int]]) -> Iterator[Any]:
    """The values of `spans`; where one does not parse and holds several objects, theirs; a lone one is repaired."""
    failures = 0
    waiting = [(start, end, 0) for start, end in reversed(spans)]
    while waiting:
        start, end, depth = waiting.pop()
        value = _loaded(text[start:end])
        inside = [] if value is not None else _complete(text[start + 1 : end - 1])[0]
        if value is None and depth < _DEPTH and (len(inside) > 1 or end - start > _REPAIRABLE):
            waiting.extend((start + 1 + low, start + 1 + high, depth + 1) for low, high in reversed(inside))
        elif value is None and end - start <= _REPAIRABLE and failures < _FAILURES:
            value = _repaired(text[start:end])
            failures += value is None
        if value is not None:
            yield value


def _repaired(text: str) -> dict[str, Any] | None:
    try:
        value = json_repair.loads(_full_width_undone(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _full_width_undone(text: str) -> str:
    """Chinese punctuation between strings, as JSON has it; inside strings it stays."""
    return re.sub(r'(?<=")\s*[：，]|[：，]\s*(?=")|[｛｝［］]', lambda mark: mark[0].translate(_FULL_WIDTH), text)


def _complete(text: str) -> tuple[list[tuple[int, int]], bool]:
    """The spans of the outermost complete objects, and whether some object has no end."""
    opened = [_Open(-1)]
    closing = ""
    for mark in _MARKS.finditer(text):
        at, character = mark.start(), mark[0]
        if closing:
            if character in closing and _ends_string(text, at):
                closing = ""
        elif character in "{｛":
            opened.append(_Open(at))
        elif character in "}｝":
            if len(opened) > 1:
                span = (opened.pop().start, at + 1)
                opened[-1].inside.append(span)
        elif _starts_string(text, at):
            closing = _CLOSING.get(character, "")
    return sorted(span for brace in opened for span in brace.inside), len(opened) > 1


def _starts_string(text: str, at: int) -> bool:
    before = at - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before >= 0 and text[before] in _BEFORE_STRING


def _ends_string(text: str, at: int) -> bool:
    after = at + 1
    while after < len(text) and text[after].isspace():
        after += 1
    return after == len(text) or text[after] in _AFTER_STRING
