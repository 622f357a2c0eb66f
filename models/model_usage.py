"""What the model cost: one row per call, by job and space. No text, no person."""

from datetime import date, datetime

from sqlalchemy import BigInteger, Column, Index, func
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, identity, space


class ModelUsage(SQLModel, table=True):
    """Tokens as the server counted them; latency in milliseconds."""

    __tablename__ = "model_usage"
    __table_args__ = (Index("model_usage_by_day", "space_id", "created_at"),)

    id: int = identity()
    space_id: int = space()
    work_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    job: str
    model: str
    outcome: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    latency_ms: int
    created_at: datetime = created()


async def spent_today(session: AsyncSession, space: int) -> tuple[date, int]:
    """The day in UTC, and the tokens that a space spent since it began."""
    today = func.date_trunc("day", func.now(), "UTC")
    query = select(
        func.timezone("UTC", today),
        func.coalesce(func.sum(col(ModelUsage.input_tokens) + col(ModelUsage.output_tokens)), 0),
    ).where(col(ModelUsage.space_id) == space, col(ModelUsage.created_at) >= today)
    began, spent = (await session.execute(query)).one()
    return began.date(), int(spent)
