"""A proposal: a note, or a change of one, that waits for a person."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, LargeBinary, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from memory.note import Draft
from models.columns import created, moment, space
from models.database import Connection
from models.note import Evidence, Reader, drafted

WAITS = timedelta(days=30)

_STATES = "('pending', 'approved', 'rejected', 'expired', 'quarantined')"


class Origin(StrEnum):
    """Why it is not a note already."""

    HUMAN_ONLY = "human_only"  # the space lets no agent write
    SPACE_VISIBILITY = "space_visibility"  # every agent of the space would read it
    MODELS_LAYER_DOWN = "models_layer_down"  # only half of what looks for personal data has looked
    DISTILLED = "distilled"  # of a conversation, by a model


class Proposal(SQLModel, table=True):
    """`note_id` and `note_version` are of the note that it would change. `proposer` is a keyed hash of a principal."""

    __tablename__ = "proposals"
    __table_args__ = (
        CheckConstraint(f"state IN {_STATES}", name="proposal_state"),
        Index("proposals_in_order", "space_id", "created_at", "id"),
        Index("proposals_waiting", "space_id", "digest", postgresql_where=text("state = 'pending'")),
        Index("proposals_of_conversation", "conversation_id", postgresql_where=text("conversation_id IS NOT NULL")),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    origin: str
    agent: str
    vendor: str | None = None
    kind: str
    title: str
    body: str
    tags: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    visibility: str
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    evidence_kind: str | None = None
    evidence: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    conversation_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    note_id: UUID | None = Field(default=None, sa_column=Column(Uuid))
    note_version: int | None = Field(default=None, sa_column=Column(Integer))
    proposer: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    actor: str
    state: str = Field(sa_column=Column(Text, nullable=False, server_default="pending"))
    reason_code: str | None = None
    decided_by: str | None = None
    created_at: datetime = created()
    decided_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Proposed:
    """What somebody would have written: by whom (`proposer`), for which agent, and to which note where it changes one.

    `conversation` is the number of the one that it was distilled from: it goes with that.
    """

    origin: Origin
    draft: Draft
    proposer: bytes
    actor: str
    evidence: Evidence | None = None
    note: UUID | None = None
    note_version: int | None = None
    conversation: int | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A proposal as it stands."""

    id: UUID
    agent: str
    vendor: str | None
    state: str
    proposed: Proposed
    reason_code: str | None
    decided_by: str | None
    created_at: datetime
    decided_at: datetime | None

    @property
    def expires_at(self) -> datetime:
        return self.created_at + WAITS


# What nobody decided in time is expired, from that instant on and without anybody's doing.
_COLUMNS = """id, agent, vendor, origin, kind, title, body, tags, visibility, evidence_kind, evidence, note_id, note_version,
    conversation_id, proposer, actor, reason_code, decided_by, created_at, decided_at,
    CASE WHEN state = 'pending' AND created_at <= now() - interval '30 days' THEN 'expired' ELSE state END AS state"""
_LISTED = f"""
SELECT * FROM (SELECT {_COLUMNS} FROM proposals WHERE space_id = $1) p WHERE ($2::text IS NULL OR state = $2)
    AND ($3::timestamptz IS NULL OR (created_at, id) > ($3, $4::uuid))
ORDER BY created_at, id LIMIT $5
"""  # noqa: S608 - constants


def opaque(proposal: UUID) -> str:
    """A proposal's id as the API shows it."""
    return f"prop_{proposal.hex}"


async def add(connection: Connection, whose: Reader, proposed: Proposed) -> UUID:
    """Writes a proposal of an agent's; answers its id."""
    proposal, draft = uuid4(), proposed.draft
    await connection.execute(
        """
        INSERT INTO proposals (id, space_id, origin, agent, vendor, kind, title, body, tags, visibility, digest,
            evidence_kind, evidence, conversation_id, note_id, note_version, proposer, actor)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
        """,
        *(proposal, whose.space, proposed.origin, whose.agent, whose.vendor),
        *(draft.kind, draft.title, draft.body, list(draft.tags), draft.visibility, draft.digest()),
        *((None, None) if proposed.evidence is None else (proposed.evidence.kind, proposed.evidence.digest)),
        *(proposed.conversation, proposed.note, proposed.note_version, proposed.proposer, proposed.actor),
    )
    return proposal


async def same(connection: Connection, whose: Reader, draft: Draft, note: UUID | None) -> UUID | None:
    """A proposal of the same agent that says the same, and still waits."""
    found: UUID | None = await connection.fetchval(
        "SELECT id FROM proposals WHERE space_id = $1 AND agent = $2 AND vendor IS NOT DISTINCT FROM $3 AND digest = $4"
        " AND kind = $5 AND tags = $6 AND visibility = $7 AND note_id IS NOT DISTINCT FROM $8 AND state = 'pending'"
        " AND created_at > now() - interval '30 days' LIMIT 1",
        *(whose.space, whose.agent, whose.vendor, draft.digest(), draft.kind, list(draft.tags), draft.visibility, note),
    )
    return found


async def find(connection: Connection, space_id: int, proposal: UUID) -> Waiting | None:
    """A proposal of the space."""
    query = f"SELECT {_COLUMNS} FROM proposals WHERE space_id = $1 AND id = $2"  # noqa: S608 - constants
    row = await connection.fetchrow(query, space_id, proposal)
    return None if row is None else _seen(row)


async def lock(connection: Connection, space_id: int, proposal: UUID) -> Waiting | None:
    """As `find`; nobody else decides about it until the transaction ends."""
    await connection.execute("SELECT FROM proposals WHERE space_id = $1 AND id = $2 FOR UPDATE", space_id, proposal)
    return await find(connection, space_id, proposal)


async def listed(
    connection: Connection, space_id: int, state: str | None, after: UUID | None, most: int
) -> list[Waiting] | None:
    """The space's proposals after one, oldest first, of one state or all; None where there is no such proposal."""
    at = None
    if after is not None:
        at = await connection.fetchval(
            "SELECT created_at FROM proposals WHERE space_id = $1 AND id = $2", space_id, after
        )
        if at is None:
            return None
    return [_seen(row) for row in await connection.fetch(_LISTED, space_id, state, at, after, most)]


async def decide(
    connection: Connection, space_id: int, waiting: Waiting, state: str, by: str, reason_code: str | None = None
) -> None:
    """Approved or rejected, by whom and why. Of what was quarantined the text goes with the decision."""
    await connection.execute(
        """
        UPDATE proposals SET state = $3, decided_by = $4, reason_code = $5, decided_at = clock_timestamp(),
            title = CASE state WHEN 'quarantined' THEN '' ELSE title END,
            body = CASE state WHEN 'quarantined' THEN '' ELSE body END,
            tags = CASE state WHEN 'quarantined' THEN '{}' ELSE tags END
        WHERE space_id = $1 AND id = $2
        """,
        *(space_id, waiting.id, state, by, reason_code),
    )


def _seen(row: Any) -> Waiting:
    evidence = None if row["evidence"] is None else Evidence(row["evidence_kind"], row["evidence"])
    proposed = Proposed(
        origin=Origin(row["origin"]),
        draft=drafted(row),
        proposer=row["proposer"],
        actor=row["actor"],
        evidence=evidence,
        note=row["note_id"],
        note_version=row["note_version"],
        conversation=row["conversation_id"],
    )
    return Waiting(
        id=row["id"],
        agent=row["agent"],
        vendor=row["vendor"],
        state=row["state"],
        proposed=proposed,
        reason_code=row["reason_code"],
        decided_by=row["decided_by"],
        created_at=row["created_at"],
        decided_at=row["decided_at"],
    )
