"""Names: what the people of a space are called, as somebody registered it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Column, LargeBinary, SmallInteger
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection
from models.sealed import SealedColumn
from models.subject import SEALED_HANDLE, HandleKind
from privacy.gram import is_ordinary
from privacy.known import Known
from privacy.sealing import Sealed, SealingKey

_SHORTEST, _SHORTEST_NUMBER = 3, 5  # letters and digits of a handle
_NOBODY = Known()

SEALED_NAME = "name"  # the purpose under which names are sealed, and their forms hashed


class Name(SQLModel, table=True):
    """One name of a subject. Several people may have the same one, so nobody is found by it."""

    __tablename__ = "names"

    subject_id: UUID = Field(primary_key=True)
    digest: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    space_id: int = space()
    head: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    words: int = Field(sa_column=Column(SmallInteger, nullable=False))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    created_at: datetime = created()


class Named(NamedTuple):
    """A name on its way into the table: hashes of its whole form and of its first words, how many it has, sealed."""

    digest: bytes
    head: bytes
    words: int
    sealed: Sealed


class Calling(NamedTuple):
    """One thing that a subject is called: a handle of a kind, or a name (None)."""

    subject: UUID
    kind: str | None
    sealed: Sealed


async def register(connection: Connection, space_id: int, subject: UUID, names: Sequence[Named]) -> None:
    """Adds names; those that the subject has already stay. Asyncpg's ForeignKeyViolationError where it is gone."""
    await connection.execute(
        "INSERT INTO names (space_id, subject_id, digest, head, words, sealed)"
        " SELECT $1, $2, n.* FROM unnest($3::bytea[], $4::bytea[], $5::smallint[], $6::bytea[]) AS n"
        " ON CONFLICT (subject_id, digest) DO NOTHING",
        *(space_id, subject, *([list(column) for column in zip(*names, strict=True)] or [[], [], [], []])),
    )


async def count(connection: Connection, space_id: int, subject: UUID) -> int:
    """How many names a subject has."""
    query = "SELECT count(*) FROM names WHERE space_id = $1 AND subject_id = $2"
    return int(await connection.fetchval(query, space_id, subject))


_TOUCH = """
WITH person AS (
    SELECT id FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id FOR NO KEY UPDATE
)
UPDATE subjects SET called_at = clock_timestamp() WHERE space_id = $1 AND id = ANY (ARRAY(SELECT id FROM person))
"""


async def touch(connection: Connection, space_id: int, people: Sequence[UUID]) -> None:
    """Says that what these subjects are called has changed."""
    await connection.execute(_TOUCH, space_id, list(people))


async def touched_since(connection: Connection, since: datetime | None) -> tuple[datetime, list[tuple[UUID, datetime]]]:
    """Now, by PostgreSQL's clock, and the subjects of every space that were touched after an instant, each with its own."""
    rows = await connection.fetch("SELECT id, called_at FROM subjects WHERE called_at > $1::timestamptz", since)
    now: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return now, [(row["id"], row["called_at"]) for row in rows]


_CALLINGS = """
WITH RECURSIVE person (id) AS (
    SELECT id FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[])
    UNION
    SELECT CASE l.subject_id WHEN p.id THEN l.other_id ELSE l.subject_id END
    FROM person p JOIN links l ON p.id IN (l.subject_id, l.other_id)
    WHERE l.space_id = $1 AND l.confirmed
)
SELECT p.id, h.kind, h.sealed FROM person p LEFT JOIN handles h ON h.subject_id = p.id AND h.space_id = $1
UNION ALL
SELECT p.id, NULL, n.sealed FROM person p JOIN names n ON n.subject_id = p.id AND n.space_id = $1
"""


async def callings(
    connection: Connection, space_id: int, people: Sequence[UUID]
) -> tuple[frozenset[UUID], list[Calling]]:
    """The subjects and whoever confirmed links lead to, and all that those are called."""
    rows = await connection.fetch(_CALLINGS, space_id, list(people))
    said = [Calling(row["id"], row["kind"], Sealed(row["sealed"])) for row in rows if row["sealed"] is not None]
    return frozenset(row["id"] for row in rows), said


def compiled(callings: Iterable[Calling], keys: Mapping[UUID, SealingKey]) -> Known:
    """What masking finds people by. A handle that would hit anything ("42", "you") is left out."""
    values = {value for one in callings if one.kind != HandleKind.KEY and _tells(one, value := _opened(one, keys))}
    return Known.compile(values) if values else _NOBODY


def _opened(one: Calling, keys: Mapping[UUID, SealingKey]) -> str:
    return keys[one.subject].open(one.sealed, SEALED_NAME if one.kind is None else SEALED_HANDLE)


def _tells(one: Calling, value: str) -> bool:
    """Whether the value is somebody's wherever it stands."""
    signs = [sign for sign in value if sign.isalnum()]
    shortest = _SHORTEST_NUMBER if all(map(str.isdigit, signs)) else _SHORTEST
    return one.kind is None or (len(signs) >= shortest and not is_ordinary(value))


async def by_heads(connection: Connection, space_id: int, heads: Sequence[bytes]) -> list[tuple[bytes, bytes, int]]:
    """The names of a space that begin by one of these: head, digest of the whole, number of words."""
    rows = await connection.fetch(
        "SELECT DISTINCT head, digest, words FROM names WHERE space_id = $1 AND head = ANY ($2::bytea[])",
        *(space_id, list(heads)),
    )
    return [(row["head"], row["digest"], row["words"]) for row in rows]


async def has_handle(connection: Connection, space_id: int, kinds: Sequence[str], digests: Sequence[bytes]) -> bool:
    """Whether somebody of the space has one of these handles, each named by its kind and digest."""
    query = """
        SELECT EXISTS (SELECT FROM unnest($2::text[], $3::bytea[]) AS w (kind, digest)
            CROSS JOIN LATERAL (SELECT FROM handles h
                WHERE h.space_id = $1 AND h.kind = w.kind AND h.digest = w.digest OFFSET 0) found)
    """
    return bool(await connection.fetchval(query, space_id, list(kinds), list(digests)))
