"""A distillation: an agent wants to learn from a conversation or a task. What came of it, and whose turns were read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    Text,
    Uuid,
    any_,
    func,
    literal,
    text,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, moment, space
from models.database import Connection
from models.note import Evidence, Reader
from models.turn import Skip, StoredTurn

READ = timedelta(days=90)  # how far back turns are read
_MOST = 50  # conversations of one id, or of one task


class Reason(StrEnum):
    """Why nothing came of it."""

    NO_REUSABLE_PROCEDURE = "no_reusable_procedure"
    PERSONAL_DATA = "personal_data"
    UNCONFIRMED_IDENTITY_LINK = "unconfirmed_identity_link"
    NO_TURNS = "no_turns"


class Distillation(SQLModel, table=True):
    """`known_as` is the hash by which conversations or turns are found, `evidence` the one that a note keeps.

    `conversations` and `logs` are those that were read: it goes with each of them.
    """

    __tablename__ = "distillations"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'proposed', 'nothing')", name="distillation_state"),
        Index(
            "distillations_once",
            *("space_id", "agent", "source", "evidence", "vendor"),
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
        Index("distillations_of_conversations", "conversations", postgresql_using="gin"),
        Index("distillations_of_logs", "logs", postgresql_using="gin"),
        Index("distillations_finished", "space_id", "finished_at", postgresql_where=text("finished_at IS NOT NULL")),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    agent: str
    vendor: str | None = None
    source: str
    known_as: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    evidence: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    conversations: list[int] = Field(sa_column=Column(ARRAY(BigInteger), nullable=False, server_default="{}"))
    logs: list[int] = Field(sa_column=Column(ARRAY(BigInteger), nullable=False, server_default="{}"))
    proposer: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    actor: str
    state: str = Field(sa_column=Column(Text, nullable=False, server_default="waiting"))
    reason: str | None = None
    proposal: UUID | None = None
    asked_at: datetime = created()
    finished_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it stands. `proposer` and `actor` are as a proposal keeps them."""

    id: UUID
    whose: Reader
    evidence: Evidence
    known_as: bytes
    conversations: Sequence[int]
    logs: Sequence[int]
    proposer: bytes
    actor: str
    state: str
    reason: str | None
    proposal: UUID | None
    asked_at: datetime
    finished_at: datetime | None


# A proposal that is gone, by its term or with somebody's erasure, is one that may be distilled again.
_COLUMNS = """d.*, d.state = 'proposed' AND NOT EXISTS (
    SELECT FROM proposals p WHERE p.space_id = d.space_id AND p.id = d.proposal) AS bereft"""
_MINE = (
    "d.space_id = $1 AND ($2::text IS NULL OR d.agent = $2) AND ($3::text IS NULL OR d.vendor IS NULL OR d.vendor = $3)"
)
_OF_CONVERSATION = """
SELECT id FROM conversations WHERE space_id = $1 AND known_as = $3 AND agent = $2 ORDER BY id DESC LIMIT $4
"""
_OF_TASK = """
SELECT id FROM conversations c WHERE space_id = $1 AND agent = $2
    AND id IN (SELECT conversation_id FROM turns t WHERE t.space_id = $1 AND t.task_digest = $3)
ORDER BY id DESC LIMIT $4
"""


def opaque(distillation: UUID) -> str:
    """A request's id as the API shows it."""
    return f"dst_{distillation.hex}"


async def sources(connection: Connection, whose: Reader, evidence: Evidence, known_as: bytes) -> list[int]:
    """The agent's own conversations that are meant, the newest of them; in order."""
    query = _OF_TASK if evidence.kind == "task" else _OF_CONVERSATION
    rows = await connection.fetch(query, whose.space, whose.agent, known_as, _MOST)
    return sorted(row["id"] for row in rows)


async def still_there(connection: Connection, space_id: int, conversations: Sequence[int], logs: Sequence[int]) -> bool:
    """Whether all of them are; an erasure of one then waits for this transaction, and goes on behind it."""
    for table, wanted in (("conversations", conversations), ("logs", logs)):
        query = f"SELECT id FROM {table} WHERE space_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id FOR KEY SHARE"  # noqa: S608 - constants
        if len(await connection.fetch(query, space_id, list(wanted))) < len(set(wanted)):
            return False
    return True


async def ask(
    connection: Connection, whose: Reader, evidence: Evidence, known_as: bytes, who: tuple[bytes, str]
) -> tuple[UUID, bool]:
    """The one request of that agent about that conversation or task, and whether something is to be done about it.

    One of which nothing came is asked anew: there may be more turns by now. `who` are proposer and actor.
    """
    named = (whose.space, whose.agent, whose.vendor, evidence.kind, evidence.digest)
    made: UUID | None = await connection.fetchval(
        "INSERT INTO distillations (id, space_id, agent, vendor, source, evidence, known_as, proposer, actor)"
        " VALUES ($6, $1, $2, $3, $4, $5, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING id",
        *(*named, uuid4(), known_as, *who),
    )
    if made is not None:
        return made, True
    query = (
        f"SELECT {_COLUMNS} FROM distillations d WHERE space_id = $1 AND agent = $2 AND vendor IS NOT DISTINCT FROM $3"  # noqa: S608 - constants
        " AND source = $4 AND evidence = $5 FOR UPDATE"
    )
    known = await connection.fetchrow(query, *named)
    if known is None:  # erased between the two
        return await ask(connection, whose, evidence, known_as, who)
    if known["state"] == "nothing" or known["bereft"]:
        await connection.execute(
            "UPDATE distillations SET state = 'waiting', reason = NULL, proposal = NULL, finished_at = NULL,"
            " asked_at = clock_timestamp(), proposer = $3, actor = $4 WHERE space_id = $1 AND id = $2",
            *(whose.space, known["id"], *who),
        )
        return known["id"], True
    return known["id"], known["state"] == "waiting"


async def read_from(
    connection: Connection, space_id: int, distillation: UUID, conversations: Sequence[int], logs: Sequence[int]
) -> None:
    """Keeps whose turns are meant, then whose are read, before they are: the request goes with each of them."""
    await connection.execute(
        "UPDATE distillations SET conversations = $3, logs = $4 WHERE space_id = $1 AND id = $2",
        *(space_id, distillation, list(conversations), list(logs)),
    )


async def find(connection: Connection, whose: Reader, distillation: UUID) -> Asked | None:
    """A request of the agent's; of anybody's where the reader is no agent."""
    query = f"SELECT {_COLUMNS} FROM distillations d WHERE {_MINE} AND d.id = $4"  # noqa: S608 - constants
    row = await connection.fetchrow(query, whose.space, whose.agent, whose.vendor, distillation)
    return None if row is None else _seen(row)


async def lock(connection: Connection, space_id: int, distillation: UUID) -> Asked | None:
    """As `find`; nobody else finishes it until the transaction ends."""
    await connection.execute(
        "SELECT FROM distillations WHERE space_id = $1 AND id = $2 FOR UPDATE", space_id, distillation
    )
    return await find(connection, Reader(space_id, None), distillation)


async def finish(
    connection: Connection, space_id: int, distillation: UUID, proposal: UUID | None, reason: Reason | None
) -> None:
    """It came to a proposal, or to nothing and why."""
    await connection.execute(
        "UPDATE distillations SET state = CASE WHEN $3::uuid IS NULL THEN 'nothing' ELSE 'proposed' END,"
        " proposal = $3, reason = $4, finished_at = clock_timestamp() WHERE space_id = $1 AND id = $2",
        *(space_id, distillation, proposal, reason),
    )


async def turns(session: AsyncSession, asked: Asked, conversations: Sequence[int], most: int) -> list[StoredTurn]:
    """What was said of it lately, oldest first, at most so many of the newest; nothing that was said outside of memory."""
    query = select(StoredTurn).where(
        col(StoredTurn.space_id) == asked.whose.space,
        col(StoredTurn.conversation_id) == any_(literal(list(conversations), ARRAY(BigInteger))),
        col(StoredTurn.said_at) > func.now() - READ,
        col(StoredTurn.reason).is_distinct_from(Skip.NO_MEMORY),
        col(StoredTurn.role).in_(("user", "assistant", "tool")),
    )
    if asked.evidence.kind == "task":
        query = query.where(col(StoredTurn.task_digest) == asked.known_as)
    found = (await session.execute(query.order_by(col(StoredTurn.id).desc()).limit(most))).scalars().all()
    return list(reversed(found))


async def only_unconfirmed(connection: Connection, space_id: int, logs: Sequence[int]) -> bool:
    """Whether the owner of each of the logs is linked with somebody, and by nobody's confirmation."""
    return bool(
        await connection.fetchval(
            """
            SELECT bool_and(coalesce(l.some AND NOT l.sure, false)) FROM logs o LEFT JOIN LATERAL (
                SELECT count(*) > 0 AS some, bool_or(confirmed) AS sure FROM links
                WHERE space_id = $1 AND (subject_id = o.subject_id OR other_id = o.subject_id)) l ON true
            WHERE o.space_id = $1 AND o.id = ANY ($2::bigint[])
            """,
            *(space_id, list(logs)),
        )
    )


def _seen(row: Any) -> Asked:
    return Asked(
        id=row["id"],
        whose=Reader(row["space_id"], row["agent"], row["vendor"]),
        evidence=Evidence(row["source"], row["evidence"]),
        known_as=row["known_as"],
        conversations=row["conversations"],
        logs=row["logs"],
        proposer=row["proposer"],
        actor=row["actor"],
        state=row["state"],
        reason=row["reason"],
        proposal=row["proposal"],
        asked_at=row["asked_at"],
        finished_at=row["finished_at"],
    )
