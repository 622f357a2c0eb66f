"""What an assistant did in a conversation: tools that it called, with what, and whether that worked."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.turn import Role, Turn

_SHORT = 400  # characters of a result that is a message, not a page of what was found
_DEEP = 6  # levels into arguments and results
_MODE = re.compile(r"(?:type|mode|action|operation)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,16}")
_MESSAGES = re.compile(r"^(?:message|error|errors|detail|details|status|reason|result|outcome|msg)$", re.IGNORECASE)
_NOTHING = re.compile(r"(?:null|none|\[\s*]|\{\s*}|\"\"|no (?:results?|matches)\b.*)?", re.IGNORECASE | re.DOTALL)
_FAILED = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure)?|un(?:available|successful|able|authori[sz]ed|known|supported)|conflict(?:ing|s)?|denied|invalid"
    r"|refused|rejected|forbidden|missing|expired|exception|time(?:d)?[ -]?out|not (?:available|found|enough|allowed|possible|add up"
    r"|valid|permitted|authori[sz]ed)|no such|can(?:not|'t|’t)|could(?: not|n't|n’t)|must (?:provide|be|have)|too (?:small|large|many|few|late|early)"
    r"|(?:is|are) (?:required|booked)|already (?:booked|exists|taken)|does(?: not|n't) exist|try (?:again|another)"
    r"|erro|falhou|inválid[oa]|não (?:encontrad[oa]|disponível)|no (?:encontrad[oa]|disponible)|fehlgeschlagen|nicht (?:gefunden|verfügbar)"
    r"|échoué|introuvable|indisponible)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, at the place of its turn. `mode` is what kind of call it was, where a parameter says so in one word."""

    at: int
    name: str
    arguments: Mapping[str, Any]
    result: str | None
    mode: str = ""

    @property
    def failed(self) -> bool:
        """Whether its result says so, or says nothing."""
        if self.result is None:
            return False
        return _NOTHING.fullmatch(self.result.strip()[:_SHORT]) is not None or bool(self.complaint)

    @property
    def complaint(self) -> str:
        """The message by which the tool said that it did not work."""
        return next((told for told in _messages(self.result or "") if _FAILED.search(told)), "")


def calls(turns: Sequence[Turn]) -> list[Call]:
    """Every call of `turns`, in order, with its result where there is one."""
    said = {word.casefold() for turn in turns if turn.role is Role.USER for word in _WORD.findall(turn.text)}
    found = []
    for at, turn in enumerate(turns):
        results = _results(turns, at) if turn.tool_calls else {}
        for nth, call in enumerate(turn.tool_calls):
            arguments = opened(call.arguments)
            result = results.get(call.id, results.get(f"#{nth}"))
            found.append(Call(at, call.name, arguments, result, _mode(arguments, said)))
    return found


def opened(arguments: str) -> dict[str, Any]:
    """Arguments by name: an object's members, or those of a list's objects; nothing of what is no JSON."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    parts = read if isinstance(read, list) else [read]
    return {str(name): value for part in parts if isinstance(part, dict) for name, value in part.items()}


def leaves(value: Any, name: str = "", depth: int = _DEEP) -> Iterator[tuple[str, str]]:
    """Each plain value inside, by the name of the member that holds it."""
    if isinstance(value, dict) and depth:
        for key, below in value.items():
            yield from leaves(below, str(key), depth - 1)
    elif isinstance(value, list) and depth:
        for below in value:
            yield from leaves(below, name, depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield name, str(value)


def result_of(call: Call) -> Any:
    """What the call's result says, opened where it is JSON; else None."""
    try:
        return json.loads(call.result or "")
    except (ValueError, RecursionError):
        return None


def _results(turns: Sequence[Turn], at: int) -> dict[str, str]:
    """The results that follow a turn of calls: by the call's id, and by their place for those that name none."""
    found: dict[str, str] = {}
    for nth, turn in enumerate(turns[at + 1 : at + 1 + 2 * len(turns[at].tool_calls)]):
        if turn.role is not Role.TOOL or turn.conversation != turns[at].conversation:
            break
        found[turn.tool_call_id or f"#{nth}"] = turn.text
    return found


def _mode(arguments: Mapping[str, Any], said: set[str]) -> str:
    for name, value in arguments.items():
        plain = value.strip("\"' ") if isinstance(value, str) else ""
        if _MODE.search(name) and _WORD.fullmatch(plain) and plain.casefold() not in said:
            return f"{name} {plain}"
    return ""


def _messages(result: str) -> Iterator[str]:
    """What of a result is a message to its caller."""
    try:
        read = json.loads(result)
    except (ValueError, RecursionError):
        read = result
    if isinstance(read, str):
        yield from [read] if len(read) <= _SHORT else [read[:80]] if read[:40].casefold().startswith("error") else []
    elif isinstance(read, dict):
        for name, value in read.items():
            if _MESSAGES.match(str(name)) and isinstance(value, str):
                yield value
