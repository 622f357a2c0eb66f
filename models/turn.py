"""A turn: one message of a conversation, in exactly one state. Numbers are allotted under the log's row lock."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Index,
    LargeBinary,
    SmallInteger,
    Text,
    Uuid,
    any_,
    func,
    literal,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, identity, moment, space
from models.conversation import Conversation
from models.sealed import SealedColumn
from privacy.sealing import Sealed

_LAST = 2**63 - 1  # past any number
SEALED_TURN = "turn"  # the purpose under which a turn's text is sealed


class State(StrEnum):
    """Where a turn stands. `erased` turns have no row: their log counts them."""

    PENDING = "pending"
    OBSERVED = "observed"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    EXPIRED = "expired"


class Skip(StrEnum):
    """Why a turn is never observed."""

    ROLE = "role"
    NO_MEMORY = "no_memory"
    MEMORY_OFF = "memory_off"
    EMPTY = "empty"


class StoredTurn(SQLModel, table=True):
    """`subject_id` names whose key seals it: the conversation's owner. `said_offset` is minutes east of UTC.

    `call_digest` is of the idempotency key that it came with, under the space's key: it outlives the person's. `unmasked`:
    the models layer has not looked at it yet, so it is observed by nobody, and shown to its own caller alone.
    """

    __tablename__ = "turns"
    __table_args__ = (
        Index("turns_by_log", "log_id", "seq", unique=True),
        Index("turns_by_message", "conversation_id", "message_digest", unique=True),
        Index("turns_pending", "log_id", "seq", postgresql_where=text("state = 'pending'")),
        Index("turns_unmasked", "log_id", "seq", postgresql_where=text("unmasked")),
        Index("turns_by_task", "space_id", "task_digest", postgresql_where=text("task_digest IS NOT NULL")),
        Index("turns_called_by_log", "log_id", "created_at", postgresql_where=text("call_digest IS NOT NULL")),
        Index("turns_called_in", "conversation_id", "created_at", postgresql_where=text("call_digest IS NOT NULL")),
    )

    id: int = identity()
    space_id: int = space()
    log_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    seq: int = Field(sa_column=Column(BigInteger, nullable=False))
    conversation_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    role: str
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    tokens: int
    said_at: datetime = moment()
    said_offset: int = Field(sa_column=Column(SmallInteger, nullable=False))
    state: str
    reason: str | None = Field(default=None, sa_column=Column(Text))
    generation: int | None = Field(default=None, sa_column=Column(BigInteger))
    message_digest: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    task_digest: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    call_digest: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    unmasked: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default=text("false")))
    created_at: datetime = created()


@dataclass(frozen=True, slots=True)
class Tally:
    """How many turns of a log are in a state, and for which reason."""

    state: str
    reason: str | None
    turns: int


async def pending_after(
    session: AsyncSession, log_id: int, cursor: int, most: int, tokens: int, reach: int
) -> Sequence[StoredTurn]:
    """The pending turns after a cursor, in the log's order: those that begin within `tokens`, and `reach` more.

    At most `most`, and none from the first on that is not wholly masked. A backlog of long turns must not be read whole
    for one batch.
    """
    unmasked = select(func.min(StoredTurn.seq)).where(col(StoredTurn.log_id) == log_id, col(StoredTurn.unmasked))
    next_ones = select(col(StoredTurn.id), col(StoredTurn.seq), col(StoredTurn.tokens)).where(
        col(StoredTurn.log_id) == log_id, col(StoredTurn.seq) > cursor, col(StoredTurn.state) == State.PENDING
    )
    next_ones = next_ones.where(col(StoredTurn.seq) < func.coalesce(unmasked.scalar_subquery(), _LAST))
    waiting = next_ones.order_by(col(StoredTurn.seq)).limit(most).subquery()
    before = func.sum(waiting.c.tokens).over(order_by=waiting.c.seq, rows=(None, -1 - reach))
    within = select(waiting.c.id, func.coalesce(before, 0).label("before")).subquery()
    query = select(StoredTurn).join(within, within.c.id == col(StoredTurn.id)).where(within.c.before < tokens)
    return (await session.execute(query.order_by(col(StoredTurn.seq)))).scalars().all()


async def unmasked(session: AsyncSession, log_id: int, most: int) -> Sequence[StoredTurn]:
    """The first turns of a log that the models layer has not looked at."""
    query = select(StoredTurn).where(col(StoredTurn.log_id) == log_id, col(StoredTurn.unmasked))
    return (await session.execute(query.order_by(col(StoredTurn.seq)).limit(most))).scalars().all()


async def remask(session: AsyncSession, turn_id: int, sealed: Sealed, tokens: int) -> bool:
    """Keeps a turn as the models layer leaves it; False where it is gone, or another was first."""
    done = await session.execute(
        update(StoredTurn)
        .where(col(StoredTurn.id) == turn_id, col(StoredTurn.unmasked))
        .values(sealed=sealed, tokens=tokens, unmasked=False)
    )
    return bool(done.rowcount)  # type: ignore[attr-defined]  # an UPDATE's result has one


async def tally(session: AsyncSession, log_id: int) -> list[Tally]:
    """Every turn of a log, counted by state and reason."""
    query = (
        select(StoredTurn.state, StoredTurn.reason, func.count())
        .where(col(StoredTurn.log_id) == log_id)
        .group_by(col(StoredTurn.state), col(StoredTurn.reason))
    )
    return [Tally(*row) for row in (await session.execute(query)).all()]


async def spoken(
    session: AsyncSession, space: int, turn_ids: Collection[int]
) -> Sequence[tuple[StoredTurn, Conversation]]:
    """Those of the turns that are there (still), each with its conversation."""
    wanted = literal(sorted(turn_ids), ARRAY(BigInteger))  # one parameter: an IN list is bounded
    query = (
        select(StoredTurn, Conversation)
        .join(Conversation, col(Conversation.id) == col(StoredTurn.conversation_id))
        .where(col(StoredTurn.space_id) == space, col(StoredTurn.id) == any_(wanted))
    )
    return [(row[0], row[1]) for row in (await session.execute(query)).all()]


async def mark_observed(session: AsyncSession, log_id: int, turn_ids: Sequence[int], generation: int) -> int:
    """Pending turns become observed by a generation; answers how many did."""
    marked = await session.execute(
        update(StoredTurn)
        .where(col(StoredTurn.log_id) == log_id, col(StoredTurn.id).in_(turn_ids))
        .where(col(StoredTurn.state) == State.PENDING)
        .values(state=State.OBSERVED, generation=generation)
    )
    return int(marked.rowcount)  # type: ignore[attr-defined]  # an UPDATE's result has one


async def oldest_pending(session: AsyncSession, log_id: int) -> datetime | None:
    """When the first pending turn arrived. Number order is arrival order, so the index gives it at once."""
    query = select(StoredTurn.created_at).where(
        col(StoredTurn.log_id) == log_id, col(StoredTurn.state) == State.PENDING
    )
    return (await session.execute(query.order_by(col(StoredTurn.seq)).limit(1))).scalar_one_or_none()
