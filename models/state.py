"""Agent state in PostgreSQL, the truth: one row a state, one a field. Who reads sees neither an expired state nor field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Column, LargeBinary, Text, UniqueConstraint, Uuid, text
from sqlmodel import Field, SQLModel

from memory.state import ScopeKind
from models.columns import created, identity, moment, space
from models.database import Connection
from models.sealed import SealedColumn
from privacy.sealing import Sealed, SealingKey

SEALED_FIELD = "state"  # the purpose under which a field's value is sealed


class State(SQLModel, table=True):
    """`scope` is a keyed hash. `subjects` are all whom it was said to be about; `key_id` the first's, or a key of its own."""

    __tablename__ = "states"
    __table_args__ = (UniqueConstraint("space_id", "scope", "agent"),)

    id: int = identity()
    space_id: int = space()
    scope_kind: str
    scope: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    agent: str
    version: int = Field(sa_column=Column(BigInteger, nullable=False))
    generation: UUID
    key_id: UUID
    subjects: list[UUID] = Field(sa_column=Column(ARRAY(Uuid), nullable=False, server_default=text("'{}'")))
    conversation_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: datetime = created()
    updated_at: datetime = created()
    expires_at: datetime = moment()


class StateField(SQLModel, table=True):
    """One field. Without an end of its own it goes with its state."""

    __tablename__ = "state_fields"

    space_id: int = space()
    state_id: int = Field(sa_column=Column(BigInteger, primary_key=True))
    field: str = Field(sa_column=Column(Text, primary_key=True))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    size: int
    written_at: datetime = moment()
    expires_at: datetime | None = moment(nullable=True)


class ErasedState(SQLModel, table=True):
    """What was written for that scope before then is refused."""

    __tablename__ = "erased_states"

    space_id: int = space(primary_key=True)
    scope: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    erased_at: datetime = created()


class StateScopeKey(SQLModel, table=True):
    """A key under which scopes are hashed; the newest makes new hashes."""

    __tablename__ = "state_scope_keys"

    space_id: int = space(primary_key=True)
    key_id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    since: datetime = created()


@dataclass(frozen=True, slots=True)
class Kept:
    """A field as it is stored; `size` in bytes of the whole's compact JSON."""

    sealed: Sealed
    size: int
    written_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A state that lives, with those of its fields that do."""

    id: int
    version: int
    generation: UUID
    key_id: UUID
    subjects: tuple[UUID, ...]
    updated_at: datetime
    expires_at: datetime
    fields: Mapping[str, Kept] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Which state: `scopes` are the hashes of its scope under each of the space's keys, the newest's first."""

    space: int
    kind: ScopeKind
    scopes: tuple[bytes, ...]
    agent: str


def scope_digest(key: SealingKey, kind: ScopeKind, named: str) -> bytes:
    """What is kept of a scope's id."""
    return key.digest(f"{kind}\0{named}", "state/scope")


async def scope_keys(connection: Connection, space_id: int, lookup_key: UUID) -> tuple[UUID, ...]:
    """The keys under which scopes are hashed, newest first; the space's look-up key was the first."""
    rows = await connection.fetch(
        "SELECT key_id FROM state_scope_keys WHERE space_id = $1 ORDER BY since DESC, key_id", space_id
    )
    return (*(row["key_id"] for row in rows), lookup_key)


async def add_scope_key(connection: Connection, space_id: int, key_id: UUID) -> None:
    """Hashes are made under this key from now on; those under the former ones stay known until they are written anew."""
    await connection.execute("INSERT INTO state_scope_keys (space_id, key_id) VALUES ($1, $2)", space_id, key_id)


async def lock(connection: Connection, space_id: int, scopes: Sequence[bytes]) -> datetime:
    """Whoever writes or erases a state of these scopes comes before this transaction, or after it; answers the time."""
    for scope in sorted(scopes):
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", scope.hex(), space_id)
    at: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return at


_FIND = """
SELECT s.id, s.version, s.generation, s.key_id, s.subjects, s.updated_at, s.expires_at,
       f.field, f.sealed, f.size, f.written_at, f.expires_at AS field_expires_at
FROM states s LEFT JOIN state_fields f ON f.state_id = s.id AND coalesce(f.expires_at, 'infinity') > clock_timestamp()
WHERE s.space_id = $1 AND s.scope = ANY ($2::bytea[]) AND s.agent = $3 AND s.expires_at > clock_timestamp()
ORDER BY f.field
"""


async def find(connection: Connection, place: Place) -> Stored | None:
    """The state; None where it was never written, was erased or has expired."""
    rows = await connection.fetch(_FIND, place.space, list(place.scopes), place.agent)
    if not rows:
        return None
    first = rows[0]
    return Stored(
        id=first["id"],
        version=first["version"],
        generation=first["generation"],
        key_id=first["key_id"],
        subjects=tuple(first["subjects"]),
        updated_at=first["updated_at"],
        expires_at=first["expires_at"],
        fields={row["field"]: _kept(row) for row in rows if row["field"] is not None},
    )


async def erased_at(connection: Connection, place: Place) -> datetime | None:
    """When a state of the scope was erased last."""
    at: datetime | None = await connection.fetchval(
        "SELECT max(erased_at) FROM erased_states WHERE space_id = $1 AND scope = ANY ($2::bytea[])",
        *(place.space, list(place.scopes)),
    )
    return at


_SAVE = """
WITH old AS (
    SELECT id FROM states WHERE space_id = $1 AND scope = ANY ($3::bytea[]) AND agent = $4
), renewed AS (
    UPDATE states s SET scope = $3[1], version = $5, generation = $6, key_id = $7, subjects = $8,
        conversation_id = coalesce($9, CASE WHEN s.generation = $6 THEN s.conversation_id END),
        created_at = CASE WHEN s.generation = $6 THEN s.created_at ELSE $10 END, updated_at = $10, expires_at = $11
    FROM old WHERE s.id = old.id RETURNING s.id
), made AS (
    INSERT INTO states (space_id, scope_kind, scope, agent, version, generation, key_id, subjects, conversation_id,
                        created_at, updated_at, expires_at)
    SELECT $1, $2, $3[1], $4, $5, $6, $7, $8, $9, $10, $10, $11 WHERE NOT EXISTS (SELECT FROM old) RETURNING id
)
SELECT id FROM renewed UNION ALL SELECT id FROM made
"""


async def save(connection: Connection, place: Place, state: Stored, conversation: int | None) -> None:
    """Stores the whole as it is to be, under the lock, by whoever sees what has expired; an expired one gives its row."""
    number = await connection.fetchval(
        _SAVE,
        *(place.space, place.kind, list(place.scopes), place.agent, state.version, state.generation, state.key_id),
        *(list(state.subjects), conversation, state.updated_at, state.expires_at),
    )
    await connection.execute(
        "DELETE FROM state_fields WHERE state_id = $1 AND NOT field = ANY ($2::text[])", number, list(state.fields)
    )
    await connection.executemany(
        """
        INSERT INTO state_fields (space_id, state_id, field, sealed, size, written_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (state_id, field) DO UPDATE SET sealed = excluded.sealed, size = excluded.size,
            written_at = excluded.written_at, expires_at = excluded.expires_at
        """,
        [
            (place.space, number, name, kept.sealed, kept.size, kept.written_at, kept.expires_at)
            for name, kept in state.fields.items()
        ],
    )


async def own_keys(connection: Connection, space_id: int, scopes: Sequence[bytes]) -> list[UUID]:
    """The keys of those states of these scopes that are about nobody who is known."""
    query = "SELECT key_id FROM states WHERE space_id = $1 AND scope = ANY ($2::bytea[]) AND subjects = '{}'"
    return [row["key_id"] for row in await connection.fetch(query, space_id, list(scopes))]


_TAKE_AWAY = """
WITH gone AS (
    DELETE FROM states WHERE space_id = $1 AND (
        subjects && $2::uuid[] OR conversation_id = ANY ($3::bigint[])
        OR (scope = ANY ($4::bytea[]) AND (subjects = '{}' OR subjects && $5::uuid[])))
    RETURNING scope_kind, scope
), told AS (
    INSERT INTO erased_states (space_id, scope)
    SELECT $1, scope FROM gone WHERE scope_kind <> 'subject' UNION SELECT $1, unnest($4::bytea[])
    ON CONFLICT (space_id, scope) DO UPDATE SET erased_at = excluded.erased_at
)
SELECT count(*) FROM gone
"""


async def take_away(
    connection: Connection,
    space_id: int,
    people: Sequence[UUID],
    conversations: Sequence[int],
    told: tuple[Sequence[bytes], Sequence[UUID]],
) -> int:
    """Deletes the states of people and conversations, in the transaction that erases them; answers how many.

    `told` are scopes of the conversations' ids, whose states may be linked with none, and the conversations' owners: a
    state of the same id that is about somebody else stays.
    """
    scopes, owners = told
    await lock(connection, space_id, scopes)
    return int(
        await connection.fetchval(
            _TAKE_AWAY, space_id, list(people), list(conversations), list(scopes), [*people, *owners]
        )
    )


async def of_people(connection: Connection, space_id: int, people: Sequence[UUID]) -> list[dict[str, Any]]:
    """Size, version and dates of the states about these subjects, newest first; never what they say."""
    rows = await connection.fetch(_SHOWN, space_id, list(people))
    return [dict(row) for row in rows]


_SHOWN = """
SELECT s.agent, s.scope_kind, s.version, s.generation, s.created_at, s.updated_at, s.expires_at, count(f.field) AS fields,
       (2 + coalesce(sum(f.size), 0) + greatest(count(f.field) - 1, 0))::bigint AS bytes
FROM states s LEFT JOIN state_fields f ON f.state_id = s.id
WHERE s.space_id = $1 AND s.subjects && $2::uuid[]
GROUP BY s.id ORDER BY s.updated_at DESC, s.id LIMIT 1000
"""


def _kept(row: Any) -> Kept:
    return Kept(Sealed(bytes(row["sealed"])), row["size"], row["written_at"], row["field_expires_at"])
