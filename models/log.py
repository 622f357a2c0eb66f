"""An observation log: one per space, subject, agent and context. Two integers move, by compare-and-set."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import BigInteger, Column, Text, UniqueConstraint, Uuid, func, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, identity, moment, space

NOT_REFLECTED = "no_valid_reflection"  # the error of a log that `failed_reflection` says could not be rewritten


class Log(SQLModel, table=True):
    """`last_seq` is the newest turn's number, `observed_through` the cursor, `flush_through` how far somebody asked."""

    __tablename__ = "logs"
    __table_args__ = (UniqueConstraint("space_id", "subject_id", "agent", "context"),)

    id: int = identity()
    space_id: int = space()
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    agent: str
    context: str
    last_seq: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    observed_through: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    flush_through: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    pending_turns: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    pending_tokens: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    oldest_pending_at: datetime | None = moment(nullable=True)
    generation: int = Field(default=1, sa_column=Column(BigInteger, nullable=False, server_default="1"))
    live_tokens: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    expired_turns: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    erased_turns: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    last_error: str | None = Field(default=None, sa_column=Column(Text))
    last_error_at: datetime | None = moment(nullable=True)
    failed_reflection: str | None = Field(default=None, sa_column=Column(Text))
    created_at: datetime = created()


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a log's pending turns are due: past so many tokens, or at such an age."""

    threshold: int
    max_age: timedelta

    def due(self, log: Log, now: datetime) -> datetime | None:
        """The instant at which this log is due; None while nothing is pending."""
        if log.pending_turns == 0:
            return None
        asked = log.flush_through > log.observed_through
        if asked or log.pending_tokens > self.threshold or log.oldest_pending_at is None:
            return now
        return log.oldest_pending_at + self.max_age


async def find(session: AsyncSession, space: int, subject: UUID, agent: str, context: str) -> Log | None:
    """One person's log with one agent, in one context."""
    mine = (
        col(Log.space_id) == space,
        col(Log.subject_id) == subject,
        col(Log.agent) == agent,
        col(Log.context) == context,
    )
    return (await session.execute(select(Log).where(*mine))).scalar_one_or_none()


async def by_id(session: AsyncSession, space: int, log_id: int) -> Log | None:
    """A log by its number; None once it was erased."""
    query = select(Log).where(col(Log.space_id) == space, col(Log.id) == log_id)
    return (await session.execute(query)).scalar_one_or_none()


async def lock(session: AsyncSession, space: int, log_id: int) -> Log | None:
    """A log under its row lock, as it is now."""
    query = select(Log).where(col(Log.space_id) == space, col(Log.id) == log_id)
    query = query.with_for_update().execution_options(populate_existing=True)
    return (await session.execute(query)).scalar_one_or_none()


async def note_error(session: AsyncSession, space: int, log_id: int, code: str) -> None:
    """Keeps why a log's work waits, as a code."""
    mine = (col(Log.space_id) == space, col(Log.id) == log_id)
    await session.execute(update(Log).where(*mine).values(last_error=code, last_error_at=func.now()))
