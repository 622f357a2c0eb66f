"""A model's answer, kept under its unit of work as soon as it arrives, so that a crash does not pay for it twice."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Column, Text, Uuid, delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, space
from models.sealed import SealedColumn
from models.work import Work
from privacy.sealing import Sealed

SEALED_ANSWER = "answer"  # the purpose under which an answer is sealed


class ModelAnswer(SQLModel, table=True):
    """`step` names which question of the work it answers."""

    __tablename__ = "model_answers"

    work_id: int = Field(sa_column=Column(BigInteger, primary_key=True))
    step: str = Field(sa_column=Column(Text, primary_key=True))
    space_id: int = space()
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    created_at: datetime = created()


async def kept(session: AsyncSession, space: int, work_id: int, step: str) -> Sealed | None:
    """The answer of an earlier run of this work to this step."""
    query = select(ModelAnswer).where(
        col(ModelAnswer.space_id) == space, col(ModelAnswer.work_id) == work_id, col(ModelAnswer.step) == step
    )
    answer = (await session.execute(query)).scalar_one_or_none()
    return None if answer is None else answer.sealed


async def keep(session: AsyncSession, answer: ModelAnswer) -> None:
    """Keeps an answer; the first one stays."""
    values = answer.model_dump(exclude={"created_at"})
    await session.execute(insert(ModelAnswer).values(values).on_conflict_do_nothing())


async def forget(session: AsyncSession, space: int, subject: UUID) -> None:
    """Removes the answers about a person that no unfinished work may ask for again, whatever that work ended as."""
    unfinished = select(Work.id).where(col(Work.id) == ModelAnswer.work_id, col(Work.state).in_(("ready", "claimed")))
    await session.execute(
        delete(ModelAnswer)
        .where(col(ModelAnswer.space_id) == space, col(ModelAnswer.subject_id) == subject)
        .where(~unfinished.exists())
        .execution_options(synchronize_session=False)
    )
