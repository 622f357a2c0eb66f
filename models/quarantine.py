"""Turns that no answer could be had about: set aside with their attempts, so that the rest of the log goes on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, func, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, identity, moment, space
from models.log import Log
from models.turn import State, StoredTurn


class Quarantined(SQLModel, table=True):
    """`attempts` is a list of `{outcome, at}`; `released_at` is when an operator sent the turn back."""

    __tablename__ = "quarantine"

    id: int = identity()
    space_id: int = space()
    log_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    turn_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    reason: str
    attempts: list[dict[str, Any]] = Field(sa_column=Column(JSONB, nullable=False))
    created_at: datetime = created()
    released_at: datetime | None = moment(nullable=True)


async def put(session: AsyncSession, record: Quarantined) -> None:
    """Sets a pending turn aside."""
    session.add(record)
    await session.execute(
        update(StoredTurn)
        .where(col(StoredTurn.id) == record.turn_id, col(StoredTurn.state) == State.PENDING)
        .values(state=State.QUARANTINED, reason=record.reason)
    )


async def held(session: AsyncSession, space: int) -> Sequence[Quarantined]:
    """What is set aside now, oldest first."""
    query = select(Quarantined).where(col(Quarantined.space_id) == space, col(Quarantined.released_at).is_(None))
    return (await session.execute(query.order_by(col(Quarantined.id)))).scalars().all()


async def held_in_all(session: AsyncSession) -> int:
    """How many are set aside now, over the spaces that the transaction sees."""
    query = select(func.count()).select_from(Quarantined).where(col(Quarantined.released_at).is_(None))
    return (await session.execute(query)).scalar_one()


async def release(session: AsyncSession, space: int, record_id: int, log: Log, now: datetime) -> bool:
    """Sends a turn back to its log's end, under the log's lock, with a new number: the cursor has passed the old one."""
    query = select(Quarantined).where(
        col(Quarantined.space_id) == space, col(Quarantined.id) == record_id, col(Quarantined.released_at).is_(None)
    )
    record = (await session.execute(query.with_for_update())).scalar_one_or_none()
    if record is None:
        return False
    turn = (await session.execute(select(StoredTurn).where(col(StoredTurn.id) == record.turn_id))).scalar_one()
    log.last_seq += 1
    log.pending_turns += 1
    log.pending_tokens += turn.tokens
    log.oldest_pending_at = log.oldest_pending_at or now
    turn.seq, turn.state, turn.reason = log.last_seq, State.PENDING, None
    record.released_at = now
    return True


async def by_id(session: AsyncSession, space: int, record_id: int) -> Quarantined | None:
    """One record."""
    query = select(Quarantined).where(col(Quarantined.space_id) == space, col(Quarantined.id) == record_id)
    return (await session.execute(query)).scalar_one_or_none()
