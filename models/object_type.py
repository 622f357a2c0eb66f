"""A space's object types: the document by which fields are declared, and what it says of an agent's state."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from config import duration
from memory.state import (
    DEFAULT_BYTES,
    DEFAULT_TERM,
    LONGEST_TERM,
    SHORTEST_TERM,
    FieldRule,
    FieldType,
    Mode,
    ScopeKind,
    StateType,
)
from models.columns import created, space
from models.database import Connection

OF_AGENTS = "agent"  # the ownership of a type that declares an agent's state
_STATE = "state"  # in `retention`: the whole's


class ObjectTypes(SQLModel, table=True):
    """The whole document of a space."""

    __tablename__ = "object_types"

    space_id: int = space(primary_key=True)
    document: list[dict[str, Any]] = Field(sa_column=Column(JSONB, nullable=False))
    version: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="1"))
    changed_at: datetime = created()


class InvalidType(Exception):
    """The document is wrong at `path`; `why` says what is taken there."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


async def read(connection: Connection, space_id: int) -> tuple[list[dict[str, Any]], int]:
    """The types, and the document's version; 0 where none was ever set."""
    row = await connection.fetchrow(
        "SELECT document::text AS document, version FROM object_types WHERE space_id = $1", space_id
    )
    return ([], 0) if row is None else (json.loads(row["document"]), row["version"])


async def change(connection: Connection, space_id: int, types: Sequence[Mapping[str, Any]]) -> int:
    """Sets the whole document, checked before; answers its version."""
    version: int = await connection.fetchval(
        """
        INSERT INTO object_types AS o (space_id, document) VALUES ($1, $2::text::jsonb)
        ON CONFLICT (space_id) DO UPDATE
            SET document = excluded.document, version = o.version + 1, changed_at = clock_timestamp()
        RETURNING version
        """,
        *(space_id, json.dumps(list(types))),
    )
    return version


def check(types: Sequence[Mapping[str, Any]]) -> None:
    """InvalidType at the first thing that the document's shape alone does not tell."""
    seen: set[str] = set()
    for place, one in enumerate(types):
        if one["type"] in seen:
            raise InvalidType(f"types[{place}].type", "is declared twice")
        seen.add(one["type"])
        for path, why in _wrong(one):
            raise InvalidType(f"types[{place}].{path}", why)


def declared(types: Sequence[Mapping[str, Any]], agent: str) -> StateType | None:
    """What an agent's state is: by the type of its name, else by the only one there is; None: no field is declared."""
    of_agents = [one for one in types if one["ownership"] == OF_AGENTS]
    named = [one for one in of_agents if one["type"] == agent]
    found = named or (of_agents if len(of_agents) == 1 else [])
    return _state_type(found[0]) if found else None


def _wrong(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    section = one.get("agent_state")
    if (section is not None) != (one["ownership"] == OF_AGENTS):
        yield "agent_state", "is taken, and needed, where the ownership is agent"
    for name, rule in one["fields"].items():
        if rule.get("values") is not None and rule["type"] != FieldType.ENUM:
            yield f"fields.{name}.values", "is taken of an enum"
    whole = DEFAULT_TERM
    for name, said in sorted(one.get("retention", {}).items(), key=lambda term: term[0] != _STATE):
        why = _wrong_term(name, said, whole, one)
        if why is not None:
            yield f"retention.{name}" if why != "names no field" else "retention", why
        elif name == _STATE:
            whole = duration.parse(said)


def _wrong_term(name: str, said: str, whole: timedelta, one: Mapping[str, Any]) -> str | None:
    if name != _STATE and name not in one["fields"]:
        return "names no field"
    try:
        term = duration.parse(said)
    except ValueError as error:
        return str(error)
    if name != _STATE:
        return None if timedelta(seconds=1) <= term <= whole else "takes 1s to the state's own term"
    return None if SHORTEST_TERM <= term <= LONGEST_TERM else "takes 1d to 180d"


def _state_type(one: Mapping[str, Any]) -> StateType:
    section, terms = one["agent_state"], one.get("retention") or {}
    write = section.get("write", "both")
    return StateType(
        scope=ScopeKind(section["scope"]),
        fields={name: _rule(said, terms.get(name) if name != _STATE else None) for name, said in one["fields"].items()},
        max_bytes=section.get("max_bytes", DEFAULT_BYTES),
        modes=frozenset(Mode) if write == "both" else frozenset({Mode(write)}),
        term=duration.parse(terms[_STATE]) if _STATE in terms else DEFAULT_TERM,
    )


def _rule(said: Mapping[str, Any], term: str | None) -> FieldRule:
    values = said.get("values")
    return FieldRule(
        type=FieldType(said["type"]),
        pii=said.get("pii", False),
        values=None if values is None else frozenset(values),
        term=None if term is None else duration.parse(term),
    )
