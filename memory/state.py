"""Agent state without its stores: what fields are declared, whether a body fits them, and what a write makes of a state."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

DEFAULT_BYTES, MOST_BYTES = 16_384, 65_536
DEFAULT_TERM = timedelta(days=30)
SHORTEST_TERM, LONGEST_TERM = timedelta(days=1), timedelta(days=180)
_DELETE = {"$delete": True}
_DEEPEST = 32  # levels of lists and objects in one value


class ScopeKind(StrEnum):
    """What one state belongs to."""

    CONVERSATION = "conversation"
    TASK = "task"
    OBJECT = "object"
    SUBJECT = "subject"


class Mode(StrEnum):
    """How a write is meant."""

    CAS = "cas"
    MERGE = "merge_by_key"


class FieldType(StrEnum):
    """What a field holds."""

    STRING = "string"
    TEXT = "text"
    ENUM = "enum"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    OBJECT = "object"
    LIST = "list"


class WrongValue(Exception):
    """A value of another type than is declared: `path` names the field, `why` what it takes."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One declared field. `values` are an enum's, None: any string; `term` None: as long as the state."""

    type: FieldType
    pii: bool = False
    values: frozenset[str] | None = None
    term: timedelta | None = None


@dataclass(frozen=True, slots=True)
class StateType:
    """What an agent's states are declared to be. `modes` are those that a write may be meant in."""

    scope: ScopeKind
    fields: Mapping[str, FieldRule]
    max_bytes: int = DEFAULT_BYTES
    modes: frozenset[Mode] = frozenset(Mode)
    term: timedelta = DEFAULT_TERM


@dataclass(frozen=True, slots=True)
class Change:
    """What a write sets, removes, and, where it is the whole, leaves nothing else of."""

    sets: Mapping[str, Any]
    removes: frozenset[str] = field(default=frozenset())
    whole: bool = False


def change_of(mode: Mode, body: Mapping[str, Any]) -> Change:
    """What a body says in a mode: only a merge knows `{"$delete": true}`."""
    if mode is Mode.CAS:
        return Change(dict(body), whole=True)
    removes = frozenset(name for name, value in body.items() if is_removal(value))
    return Change({name: value for name, value in body.items() if name not in removes}, removes)


def is_removal(value: object) -> bool:
    """Exactly `{"$delete": true}`; a number is not a truth."""
    return isinstance(value, dict) and value == _DELETE and value["$delete"] is True


def all_declared(kind: StateType, body: Mapping[str, Any]) -> bool:
    """Whether the schema knows every field that a write names."""
    return body.keys() <= kind.fields.keys()


def check_types(kind: StateType, change: Change) -> None:
    """WrongValue for the first value that its field does not take."""
    for name, value in change.sets.items():
        rule = kind.fields[name]
        if _depth(value) > _DEEPEST:
            raise WrongValue(f"body.{name}", f"takes at most {_DEEPEST} levels")
        if not _TAKES[rule.type](value):
            raise WrongValue(f"body.{name}", f"takes {_SAYS[rule.type]}")
        if rule.values is not None and value not in rule.values:
            raise WrongValue(f"body.{name}", "takes one of the values that are declared")


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """A value with every text in it masked, names of members included; a number that is personal becomes its placeholder."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        told = compact(value)
        covered = mask(told)
        return value if covered == told else covered
    if isinstance(value, list):
        return [masked(one, mask) for one in value]
    return {mask(name): masked(one, mask) for name, one in value.items()}


def texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts(one)


def compact(value: Any) -> str:
    """The compact JSON of a value, as it is sealed and measured."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size_of(name: str, told: str) -> int:
    """UTF-8 bytes that a field costs in the whole's compact JSON, without the comma; `told` is its value's."""
    return len(compact(name).encode()) + 1 + len(told.encode())


def size_of_all(sizes: Mapping[str, int]) -> int:
    """UTF-8 bytes of the whole's compact JSON."""
    return 2 + sum(sizes.values()) + max(0, len(sizes) - 1)


def _depth(value: Any) -> int:
    """Levels of lists and objects, without recursion: a body may be as deep as it is long."""
    level, here = 0, [value]
    while here:
        inside = [one for one in here if isinstance(one, list | dict)]
        if not inside or level > _DEEPEST:
            return level
        level += 1
        here = [part for one in inside for part in (one.values() if isinstance(one, dict) else one)]
    return level


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_date(value: object) -> bool:
    if not isinstance(value, str):
        return False
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            read(value)
        except ValueError:
            continue
        return True
    return False


_TAKES: Mapping[FieldType, Callable[[Any], bool]] = {
    FieldType.STRING: lambda value: isinstance(value, str),
    FieldType.TEXT: lambda value: isinstance(value, str),
    FieldType.ENUM: lambda value: isinstance(value, str),
    FieldType.NUMBER: _is_number,
    FieldType.BOOLEAN: lambda value: isinstance(value, bool),
    FieldType.DATE: _is_date,
    FieldType.OBJECT: lambda value: isinstance(value, dict),
    FieldType.LIST: lambda value: isinstance(value, list),
}
_SAYS: Mapping[FieldType, str] = {
    FieldType.STRING: "a string",
    FieldType.TEXT: "a string",
    FieldType.ENUM: "a string",
    FieldType.NUMBER: "a number",
    FieldType.BOOLEAN: "true or false",
    FieldType.DATE: "a date as YYYY-MM-DD, or an instant as RFC 3339 writes it",
    FieldType.OBJECT: "an object",
    FieldType.LIST: "a list",
}
