"""An export: a package of everything about one person, asked for, made, fetched, and gone after its time."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, LargeBinary, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, moment, space
from models.database import Connection
from models.dataset import Target
from models.rows import number
from models.subject import closure

KEPT = timedelta(days=7)  # how long a package lies ready, where a space has no term of its own

_STATES = "('accepted', 'running', 'ready', 'expired', 'failed', 'cancelled')"


class Export(SQLModel, table=True):
    """`file` is a name in the package store; `asked` a keyed hash of the request, where it is to count once."""

    __tablename__ = "exports"
    __table_args__ = (
        CheckConstraint(f"state IN {_STATES}", name="export_state"),
        Index("exports_once", "space_id", "asked", unique=True),
        Index("exports_by_subject", "subject_id"),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    asked: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    actor: str
    state: str
    work_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    file: str | None = None
    size: int | None = Field(default=None, sa_column=Column(BigInteger))
    counts: dict[str, int] = Field(sa_column=Column(JSONB, nullable=False))
    as_of: datetime | None = moment(nullable=True)
    created_at: datetime = created()
    finished_at: datetime | None = moment(nullable=True)
    expires_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Package:
    """An export as it stands now. `size` is in bytes, opened; `progress` is the job's."""

    id: UUID
    space: int
    subject: UUID
    actor: str
    state: str
    file: str | None
    size: int | None
    counts: Mapping[str, int]
    progress: Mapping[str, Any]
    as_of: datetime | None
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Made:
    """What a run has made."""

    file: str
    size: int
    counts: Mapping[str, int]
    as_of: datetime


def opaque(export: UUID) -> str:
    """An export's id as the API shows it."""
    return f"exp_{export.hex}"


def folder(space: int, subject: UUID) -> str:
    """Where a person's packages lie. It is found from the person's id, and does not tell it."""
    return f"{space}/{hashlib.sha256(b'afterturn/packages/' + subject.bytes).hexdigest()[:32]}"


async def accept(connection: Connection, export: Export) -> bool:
    """Takes an export on. False: the same request was taken before; `asked_before` finds it."""
    made = await connection.fetchval(
        """
        INSERT INTO exports (id, space_id, subject_id, asked, actor, state, counts)
        VALUES ($1, $2, $3, $4, $5, 'accepted', '{}') ON CONFLICT (space_id, asked) DO NOTHING RETURNING true
        """,
        *(export.id, export.space_id, export.subject_id, export.asked, export.actor),
    )
    return bool(made)


async def asked_before(connection: Connection, space: int, asked: bytes) -> UUID | None:
    """The export that a request made."""
    found: UUID | None = await connection.fetchval(
        "SELECT id FROM exports WHERE space_id = $1 AND asked = $2", space, asked
    )
    return found


async def belongs_to(connection: Connection, space: int, export: UUID, work_id: int) -> None:
    """Names the work that makes it."""
    await connection.execute("UPDATE exports SET work_id = $3 WHERE space_id = $1 AND id = $2", space, export, work_id)


# What is told is what holds now: past its time before the sweep, and when its work was given up, or its person is gone.
_FIND = """
SELECT e.id, e.space_id, e.subject_id, e.actor, e.file, e.size, e.counts::text, coalesce(w.progress, '{}')::text,
       e.as_of, e.created_at, e.finished_at, e.expires_at,
       CASE WHEN e.state IN ('accepted', 'running', 'ready') AND NOT EXISTS (
                SELECT FROM subjects s WHERE s.space_id = e.space_id AND s.id = e.subject_id) THEN 'cancelled'
            WHEN e.state = 'ready' AND e.expires_at <= clock_timestamp() THEN 'expired'
            WHEN e.state IN ('accepted', 'running') AND coalesce(w.state, 'dead') IN ('dead', 'cancelled') THEN 'failed'
            ELSE e.state END AS state
FROM exports e LEFT JOIN work w ON w.id = e.work_id
WHERE e.space_id = $1 AND e.id = $2
"""


async def find(connection: Connection, space: int, export: UUID) -> Package | None:
    """An export of the space, as it stands now."""
    row = await connection.fetchrow(_FIND, space, export)
    if row is None:
        return None
    return Package(
        id=row["id"],
        space=row["space_id"],
        subject=row["subject_id"],
        actor=row["actor"],
        state=row["state"],
        file=row["file"],
        size=row["size"],
        counts=json.loads(row["counts"]),
        progress=json.loads(row["coalesce"]),
        as_of=row["as_of"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        expires_at=row["expires_at"],
    )


async def begin(connection: Connection, space: int, export: UUID) -> None:
    """A run has begun."""
    await connection.execute(
        "UPDATE exports SET state = 'running' WHERE space_id = $1 AND id = $2 AND state IN ('accepted', 'running')",
        *(space, export),
    )


# Turns that are about to go are still in the snapshot of whoever looks now.
_ERASING = """
SELECT EXISTS (
    SELECT FROM erasures e CROSS JOIN LATERAL jsonb_array_elements_text(e.target->'conversations') AS c (id)
    WHERE e.space_id = $1 AND e.state IN ('accepted', 'running', 'incomplete') AND EXISTS (
        SELECT FROM turns t WHERE t.conversation_id = c.id::bigint AND t.log_id = ANY ($2::bigint[])))
"""


async def half_erased(connection: Connection, target: Target) -> bool:
    """Is something of the target's logs being erased right now, a conversation say?"""
    return bool(await connection.fetchval(_ERASING, target.space, list(target.logs)))


async def stand(connection: Connection, space: int, subjects: Sequence[UUID]) -> bool:
    """The fence: are all of them there still? They stay until the transaction ends."""
    rows = await connection.fetch(
        "SELECT FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id FOR KEY SHARE",
        *(space, list(subjects)),
    )
    return len(rows) == len(set(subjects))


async def finish(connection: Connection, space: int, export: UUID, made: Made) -> datetime | None:
    """It can be fetched, until the instant that is answered. None: it was cancelled meanwhile.

    Terms that change at this moment are those before, or wait and shorten this one's time as well.
    """
    await connection.execute("SELECT pg_advisory_xact_lock_shared(hashtext('afterturn/retention'), $1)", space)
    until: datetime | None = await connection.fetchval(
        """
        UPDATE exports SET state = 'ready', file = $3, size = $4, counts = $5::text::jsonb, as_of = $6,
            finished_at = clock_timestamp(), expires_at = clock_timestamp() + coalesce(
                (SELECT coalesce(term, interval '100 years') FROM retention WHERE space_id = $1 AND data_set = 'packages'),
                $7::interval)
        WHERE space_id = $1 AND id = $2 AND state = 'running' RETURNING expires_at
        """,
        *(space, export, made.file, made.size, json.dumps(dict(made.counts)), made.as_of, KEPT),
    )
    return until


async def end(connection: Connection, space: int, export: UUID, state: str) -> bool:
    """It has no file any more: `expired`, `failed` or `cancelled`. False: that was so already, or it is not there."""
    ended = await connection.execute(
        """
        UPDATE exports SET state = $3, file = NULL, finished_at = coalesce(finished_at, clock_timestamp())
        WHERE space_id = $1 AND id = $2 AND (state IN ('accepted', 'running', 'ready') OR file IS NOT NULL)
        """,
        *(space, export, state),
    )
    return bool(number(ended))


async def target(connection: Connection, space: int, subject: UUID) -> Target:
    """What is known of a person, by ids, as the transaction sees it. Without subjects: there is no such person."""
    subjects = await closure(connection, space, subject)
    logs = await connection.fetch(
        "SELECT id FROM logs WHERE space_id = $1 AND subject_id = ANY ($2::uuid[]) ORDER BY id", space, subjects
    )
    conversations = await connection.fetch(
        "SELECT id FROM conversations WHERE space_id = $1 AND subject_id = ANY ($2::uuid[]) ORDER BY id",
        *(space, subjects),
    )
    return Target(
        space,
        subjects=tuple(subjects),
        logs=tuple(row["id"] for row in logs),
        conversations=tuple(row["id"] for row in conversations),
    )
