"""A conversation: a thread between a subject and one agent. Its id may be a phone number, so it is kept sealed."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Column, Index, LargeBinary, UniqueConstraint, Uuid, text
from sqlmodel import Field, SQLModel

from models.columns import created, identity, moment, space
from models.database import Connection
from models.sealed import SealedColumn
from privacy.sealing import Sealed

SEALED_ID = "conversation"  # the purpose under which a conversation's id is sealed


class Conversation(SQLModel, table=True):
    """Unique per space and owner; the agent is pinned by the first turn.

    `known_as` is its id's hash under the space's key, for whoever knows the id and not the person. `reborn_at` is when
    an earlier one of the same id was erased alone, `reborn_by` that erasure.
    """

    __tablename__ = "conversations"
    __table_args__ = (
        UniqueConstraint("space_id", "subject_id", "digest"),
        Index("conversations_known_as", "space_id", "known_as", postgresql_where=text("known_as IS NOT NULL")),
    )

    id: int = identity()
    space_id: int = space()
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    sealed_id: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    known_as: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    agent: str
    reborn_at: datetime | None = moment(nullable=True)
    reborn_by: UUID | None = None
    created_at: datetime = created()


async def number(connection: Connection, space: int, subject: UUID, digest: bytes) -> int | None:
    """The conversation of a subject by its id's digest. The connection's transaction is bound to the space."""
    found: int | None = await connection.fetchval(
        "SELECT id FROM conversations WHERE space_id = $1 AND subject_id = $2 AND digest = $3", space, subject, digest
    )
    return found
