"""A subject: the person that memory is about, known by handles that are kept as keyed hashes."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Column, LargeBinary, Uuid
from sqlmodel import Field, SQLModel

from models.columns import created, moment, space
from models.database import Connection
from models.sealed import SealedColumn
from privacy.sealing import Sealed

SEALED_HANDLE = "handle"  # the purpose under which handles are sealed


class HandleKind(StrEnum):
    """Who vouches for a handle. A header's canonical user lives apart from a key's own owner, and can never equal one."""

    OWNER = "owner"
    CANONICAL_USER = "canonical_user"
    END_USER = "end_user"
    EMAIL = "email"
    PHONE = "phone"
    ACCOUNT = "account"
    CHANNEL = "channel"
    KEY = "key"


class Subject(SQLModel, table=True):
    """`id` is random, opaque, and names the subject's key in the key store as well.

    `reborn_at` is when an earlier life of one of its handles was erased: what was said before that is refused.
    `called_at` is when its names or links last changed.
    """

    __tablename__ = "subjects"

    id: UUID = Field(primary_key=True)
    space_id: int = space()
    reborn_at: datetime | None = moment(nullable=True)
    called_at: datetime | None = moment(nullable=True)
    created_at: datetime = created()


class Handle(SQLModel, table=True):
    """One name of a subject: a keyed hash to find it by, and the name itself, sealed."""

    __tablename__ = "handles"

    space_id: int = space(primary_key=True)
    kind: str = Field(primary_key=True)
    digest: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    confirmed: bool = True
    created_at: datetime = created()


def opaque(subject: UUID) -> str:
    """A subject's id as the API shows it."""
    return f"sub_{subject.hex}"


async def find(connection: Connection, space: int, kind: str, digest: bytes) -> UUID | None:
    """The subject of a handle. The connection's transaction is bound to the space."""
    found: UUID | None = await connection.fetchval(
        "SELECT subject_id FROM handles WHERE space_id = $1 AND kind = $2 AND digest = $3", space, kind, digest
    )
    return found


async def reborn_at(connection: Connection, space: int, people: Sequence[UUID]) -> datetime | None:
    """The latest instant at which an earlier life of one of these subjects was erased; None: they had none."""
    at: datetime | None = await connection.fetchval(
        "SELECT max(reborn_at) FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[])", space, list(people)
    )
    return at


async def introduce(
    connection: Connection, space: int, subject: UUID, handle: tuple[str, bytes, Sealed], reborn_at: datetime | None
) -> UUID:
    """The subject of a handle, made as `subject` unless the handle is known already.

    Two callers may race: the handle's primary key lets one win, and both answer with the winner. `reborn_at` is when
    the handle's earlier life was erased.
    """
    kind, digest, sealed = handle
    won = await connection.fetchval(
        """
        WITH person AS (INSERT INTO subjects (id, space_id, reborn_at) VALUES ($1, $2, $6) RETURNING id)
        INSERT INTO handles (space_id, kind, digest, subject_id, sealed)
        SELECT $2, $3, $4, id, $5 FROM person
        ON CONFLICT (space_id, kind, digest) DO NOTHING RETURNING subject_id
        """,
        *(subject, space, kind, digest, sealed, reborn_at),
    )
    if won is not None:
        return subject
    await connection.execute("DELETE FROM subjects WHERE space_id = $1 AND id = $2", space, subject)
    found = await find(connection, space, kind, digest)
    if found is None:
        raise LookupError("the handle went away while it was introduced")
    return found


_CLOSURE = """
WITH RECURSIVE person (id) AS (
    SELECT id FROM subjects WHERE space_id = $1 AND id = $2
    UNION
    SELECT CASE l.subject_id WHEN p.id THEN l.other_id ELSE l.subject_id END
    FROM person p JOIN links l ON p.id IN (l.subject_id, l.other_id)
    WHERE l.space_id = $1 AND l.confirmed
)
SELECT id FROM person ORDER BY id
"""


async def closure(connection: Connection, space: int, subject: UUID) -> list[UUID]:
    """The subjects that are this person: it, and whoever confirmed links lead to. Empty where there is no such one."""
    rows = await connection.fetch(_CLOSURE, space, subject)
    return [row["id"] for row in rows]


async def handles(connection: Connection, space: int, people: Sequence[UUID]) -> list[tuple[UUID, str, Sealed]]:
    """Every handle of the subjects: whose, of which kind, sealed under its subject's key."""
    rows = await connection.fetch(
        "SELECT subject_id, kind, sealed FROM handles WHERE space_id = $1 AND subject_id = ANY ($2::uuid[])",
        *(space, list(people)),
    )
    return [(row["subject_id"], row["kind"], Sealed(row["sealed"])) for row in rows]
