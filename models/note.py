"""A note of an agent: what it learned about its work, in versions. Never about a person, so its text is readable."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR
from sqlmodel import Field, SQLModel

from memory import search
from memory.note import Draft, NoteKind, Visibility
from memory.note_block import cost
from models.columns import created, moment, space
from models.database import Connection

_ACTIVE = text("status = 'active'")


class Note(SQLModel, table=True):
    """What is the note's in every version. `vendor` is whose agent it was when it learned this; `evidence` a keyed hash."""

    __tablename__ = "notes"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'retired', 'quarantined')", name="note_status"),
        CheckConstraint("evidence_kind IN ('conversation', 'task')", name="note_evidence"),
        Index("notes_in_order", "space_id", "created_at", "id"),
        Index("notes_of_agent", "space_id", "agent", "status"),
        Index("notes_by_digest", "space_id", "digest", postgresql_where=_ACTIVE),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    agent: str
    vendor: str | None = None
    status: str = Field(sa_column=Column(Text, nullable=False, server_default="active"))
    version: int = Field(sa_column=Column(Integer, nullable=False, server_default="1"))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    evidence_kind: str | None = None
    evidence: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    created_at: datetime = created()
    revised_at: datetime = created()
    retired_at: datetime | None = moment(nullable=True)


class NoteVersion(SQLModel, table=True):
    """What a note said, in so many `tokens` of a block. `retired_at`: since when it does not say so any more."""

    __tablename__ = "note_versions"
    __table_args__ = (
        Index("note_versions_search", "search", postgresql_using="gin"),
        Index("note_versions_retired", "space_id", "retired_at", postgresql_where=text("retired_at IS NOT NULL")),
    )

    space_id: int = space()
    note_id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    version: int = Field(primary_key=True)
    kind: str
    title: str
    body: str
    tags: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    visibility: str
    search: str = Field(sa_column=Column(TSVECTOR, nullable=False))
    tokens: int
    actor: str
    created_at: datetime = created()
    retired_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: an agent of a vendor, or a reviewer, who sees all of the space (`agent` None)."""

    space: int
    agent: str | None
    vendor: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a note comes from: a conversation or a task, by a keyed hash of its id."""

    kind: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Written:
    """A note in one version, the newest unless a list of versions says otherwise."""

    id: UUID
    agent: str
    vendor: str | None
    status: str
    version: int
    draft: Draft
    tokens: int
    evidence: Evidence | None
    created_at: datetime
    revised_at: datetime


# Of a note `n` in its version `v`: what the agent $2 of vendor $3 may read. Two vendors may use one unregistered name.
OWN = "(n.agent = $2 AND (n.vendor IS NULL OR $3::text IS NULL OR n.vendor = $3))"
READABLE = f"""($2::text IS NULL OR (n.status <> 'quarantined' AND (
    {OWN} OR (v.visibility = 'vendor' AND n.vendor = $3) OR v.visibility = 'space')))"""
COLUMNS = """n.id, n.agent, n.vendor, n.status, v.version, v.kind, v.title, v.body, v.tags, v.visibility, v.tokens, n.evidence_kind,
    n.evidence, n.created_at, v.created_at AS revised_at"""
NEWEST = "notes n JOIN note_versions v ON v.note_id = n.id AND v.version = n.version"

_ONE = f"SELECT {COLUMNS} FROM {NEWEST} WHERE n.space_id = $1 AND {READABLE} AND n.id = $4"  # noqa: S608 - constants
_MINE = f"SELECT {COLUMNS} FROM {NEWEST} WHERE n.space_id = $1 AND ($2::text IS NULL OR {OWN}) AND n.id = $4 FOR UPDATE OF n"  # noqa: S608 - constants
_LISTED = f"""
SELECT {COLUMNS} FROM {NEWEST} WHERE n.space_id = $1 AND {READABLE} AND n.status = $4
    AND ($5::timestamptz IS NULL OR (n.created_at, n.id) > ($5, $6::uuid))
ORDER BY n.created_at, n.id LIMIT $7
"""  # noqa: S608 - constants
_VERSIONS = f"""
SELECT {COLUMNS} FROM notes n JOIN note_versions v ON v.note_id = n.id
WHERE n.space_id = $1 AND {READABLE} AND n.id = $4 AND v.version > $5 ORDER BY v.version LIMIT $6
"""  # noqa: S608 - constants
_TWIN = f"""
SELECT n.id FROM {NEWEST} WHERE n.space_id = $1 AND {READABLE} AND n.status = 'active' AND n.digest = $4
    AND n.id IS DISTINCT FROM $5::uuid ORDER BY n.created_at LIMIT 1
"""  # noqa: S608 - constants
_ACTIVE_ONES = f"""
SELECT {COLUMNS} FROM {NEWEST} WHERE n.space_id = $1 AND {READABLE} AND n.status = 'active'
"""  # noqa: S608 - constants


def opaque(note: UUID) -> str:
    """A note's id as the API shows it."""
    return f"note_{note.hex}"


async def find(connection: Connection, reader: Reader, note: UUID) -> Written | None:
    """A note that the reader may read, as it stands."""
    row = await connection.fetchrow(_ONE, *parameters(reader), note)
    return None if row is None else seen(row)


async def lock_own(connection: Connection, writer: Reader, note: UUID) -> Written | None:
    """A note of the writer's own (of anybody's for a reviewer), whatever its status; locked until the transaction ends."""
    row = await connection.fetchrow(_MINE, *parameters(writer), note)
    return None if row is None else seen(row)


async def listed(
    connection: Connection, reader: Reader, status: str, after: UUID | None, most: int
) -> list[Written] | None:
    """What the reader may read of one status after a note, oldest first; None where there is no such note."""
    at = None
    if after is not None:
        at = await connection.fetchval(
            "SELECT created_at FROM notes WHERE space_id = $1 AND id = $2", reader.space, after
        )
        if at is None:
            return None
    return [seen(row) for row in await connection.fetch(_LISTED, *parameters(reader), status, at, after, most)]


async def versions(connection: Connection, reader: Reader, note: UUID, after: int, most: int) -> list[Written]:
    """What a note said in its versions after one, as far as each was for the reader; empty where there is none."""
    if await find(connection, reader, note) is None:
        return []
    return [seen(row) for row in await connection.fetch(_VERSIONS, *parameters(reader), note, after, most)]


async def active(connection: Connection, reader: Reader) -> list[Written]:
    """All active notes that the reader may read, in no order."""
    return [seen(row) for row in await connection.fetch(_ACTIVE_ONES, *parameters(reader))]


async def twin(connection: Connection, reader: Reader, draft: Draft, besides: UUID | None = None) -> UUID | None:
    """An active note that says the same, of those that the reader may read. Whoever writes the same meanwhile waits."""
    digest = draft.digest()
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", digest.hex(), reader.space)
    found: UUID | None = await connection.fetchval(_TWIN, *parameters(reader), digest, besides)
    return found


async def active_of(connection: Connection, space_id: int, agent: str) -> int:
    """How many active notes an agent has."""
    return int(
        await connection.fetchval(
            "SELECT count(*) FROM notes WHERE space_id = $1 AND agent = $2 AND status = 'active'", space_id, agent
        )
    )


async def add(connection: Connection, owner: Reader, draft: Draft, evidence: Evidence | None, actor: str) -> Written:
    """A new note, in its first version."""
    note = uuid4()
    await connection.execute(
        "INSERT INTO notes (id, space_id, agent, vendor, digest, evidence_kind, evidence)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        *(note, owner.space, owner.agent, owner.vendor, draft.digest()),
        *((None, None) if evidence is None else (evidence.kind, evidence.digest)),
    )
    await _append(connection, owner.space, note, 1, draft, actor)
    return await again(connection, owner.space, note)


async def revise(connection: Connection, space_id: int, before: Written, draft: Draft, actor: str) -> Written:
    """One version more; the one before stays to be read. The note is locked."""
    version = before.version + 1
    await connection.execute(
        "UPDATE note_versions SET retired_at = clock_timestamp() WHERE space_id = $1 AND note_id = $2 AND version = $3",
        *(space_id, before.id, before.version),
    )
    await connection.execute(
        "UPDATE notes SET version = $3, digest = $4, revised_at = clock_timestamp() WHERE space_id = $1 AND id = $2",
        *(space_id, before.id, version, draft.digest()),
    )
    await _append(connection, space_id, before.id, version, draft, actor)
    return await again(connection, space_id, before.id)


async def retire(connection: Connection, space_id: int, note: UUID) -> Written:
    """It is not served any more, but stays to be looked up. The note is locked."""
    await connection.execute(
        "UPDATE notes SET status = 'retired', retired_at = clock_timestamp() WHERE space_id = $1 AND id = $2",
        *(space_id, note),
    )
    await connection.execute(
        "UPDATE note_versions SET retired_at = coalesce(retired_at, clock_timestamp())"
        " WHERE space_id = $1 AND note_id = $2",
        *(space_id, note),
    )
    return await again(connection, space_id, note)


async def delete(connection: Connection, space_id: int, note: UUID) -> int:
    """The note is gone in every version; answers how many there were, 0 where there was no such note."""
    gone = await connection.fetchval(
        "SELECT count(*) FROM note_versions WHERE space_id = $1 AND note_id = $2", space_id, note
    )
    done = await connection.execute("DELETE FROM notes WHERE space_id = $1 AND id = $2", space_id, note)
    return int(gone) if done == "DELETE 1" else 0


def seen(row: Any) -> Written:
    """A row of `COLUMNS`."""
    evidence = None if row["evidence"] is None else Evidence(row["evidence_kind"], row["evidence"])
    return Written(
        id=row["id"],
        agent=row["agent"],
        vendor=row["vendor"],
        status=row["status"],
        version=row["version"],
        draft=drafted(row),
        tokens=row["tokens"],
        evidence=evidence,
        created_at=row["created_at"],
        revised_at=row["revised_at"],
    )


def drafted(row: Any) -> Draft:
    """What a row of a note's version, or of a proposal, says."""
    return Draft(NoteKind(row["kind"]), row["title"], row["body"], tuple(row["tags"]), Visibility(row["visibility"]))


async def _append(connection: Connection, space_id: int, note: UUID, version: int, draft: Draft, actor: str) -> None:
    await connection.execute(
        """
        INSERT INTO note_versions (space_id, note_id, version, kind, title, body, tags, visibility, search, actor,
            tokens)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, setweight(to_tsvector('simple', $9), 'A')
            || setweight(to_tsvector('simple', $10), 'B') || setweight(to_tsvector('simple', $11), 'C'), $12, $13)
        """,
        *(space_id, note, version, draft.kind, draft.title, draft.body, list(draft.tags), draft.visibility),
        *(_words(draft.title), _words(*draft.tags), _words(draft.body), actor, cost(draft)),
    )


def _words(*texts: str) -> str:
    return " ".join(term for text in texts for term in search.terms(text))


async def again(connection: Connection, space_id: int, note: UUID) -> Written:
    """A note that this transaction has changed."""
    found = await find(connection, Reader(space_id, None), note)
    if found is None:
        raise LookupError("a note of this transaction is not there")
    return found


def parameters(reader: Reader) -> Sequence[Any]:
    """The first three of each query: $1 to $3."""
    return reader.space, reader.agent, reader.vendor
