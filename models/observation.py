"""Observations: the lines of a log, by generation. A reflection writes a new generation and keeps the old."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Column, LargeBinary, SmallInteger, UniqueConstraint, Uuid, func, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import Field, SQLModel, col, select

from models.columns import created, identity, moment, space
from models.log import Log
from models.sealed import SealedColumn
from privacy.sealing import Sealed

SEALED_OBSERVATION = "observation"  # the purpose under which a line is sealed and its text hashed


class Generation(SQLModel, table=True):
    """One state of a log: made by `observe` (the first), `reflect` or `restore` from the one before."""

    __tablename__ = "generations"

    log_id: int = Field(sa_column=Column(BigInteger, primary_key=True))
    number: int = Field(sa_column=Column(BigInteger, primary_key=True))
    space_id: int = space()
    made_by: str
    parent: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: datetime = created()


class Observation(SQLModel, table=True):
    """`sealed` holds text and dates as JSON; `evidence` are turns, `sources` the lines of the generation before.

    `digest` is an HMAC of the normalised text and its dates under the subject's key: one generation never says the
    same twice. `born_at` is the age of its oldest source: a rewrite never renews a term.
    """

    __tablename__ = "observations"
    __table_args__ = (UniqueConstraint("log_id", "generation", "digest"),)

    id: int = identity()
    space_id: int = space()
    log_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    subject_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    generation: int = Field(sa_column=Column(BigInteger, nullable=False))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    kind: str
    priority: str
    tokens: int
    observed_at: datetime = moment()
    observed_offset: int = Field(sa_column=Column(SmallInteger, nullable=False))
    evidence: list[int] = Field(sa_column=Column(ARRAY(BigInteger), nullable=False))
    sources: list[int] = Field(sa_column=Column(ARRAY(BigInteger), nullable=False))
    supersedes: int | None = Field(default=None, sa_column=Column(BigInteger))
    born_at: datetime = moment()
    created_at: datetime = created()


async def append(session: AsyncSession, rows: Sequence[Observation]) -> list[int]:
    """Adds lines; one that its generation has already is left out. Answers the ids of the added."""
    if not rows:
        return []
    # One statement shape, whatever the number of rows: a VALUES list of its own would be compiled for each.
    adding = insert(Observation).on_conflict_do_nothing().returning(col(Observation.id))
    values = [row.model_dump(exclude={"id", "created_at"}) for row in rows]
    return list((await session.execute(adding, values)).scalars())


async def of_generation(session: AsyncSession, log_id: int, generation: int) -> Sequence[Observation]:
    """Every line of one generation, oldest first."""
    query = select(Observation).where(col(Observation.log_id) == log_id, col(Observation.generation) == generation)
    return (await session.execute(query.order_by(col(Observation.observed_at), col(Observation.id)))).scalars().all()


async def newest(session: AsyncSession, log_id: int, generation: int, most: int) -> Sequence[Observation]:
    """The lines that a generation took last, at most so many, oldest first."""
    query = select(Observation).where(col(Observation.log_id) == log_id, col(Observation.generation) == generation)
    rows = (await session.execute(query.order_by(col(Observation.id).desc()).limit(most))).scalars().all()
    return rows[::-1]


async def live_tokens(session: AsyncSession, log_id: int, generation: int) -> int:
    """The tokens of a generation."""
    query = select(func.coalesce(func.sum(col(Observation.tokens)), 0)).where(
        col(Observation.log_id) == log_id, col(Observation.generation) == generation
    )
    return int((await session.execute(query)).scalar_one())


async def after(session: AsyncSession, log_id: int, generation: int, newest_known: int) -> Sequence[Observation]:
    """The lines that a generation took after the one with this id."""
    query = select(Observation).where(
        col(Observation.log_id) == log_id,
        col(Observation.generation) == generation,
        col(Observation.id) > newest_known,
    )
    return (await session.execute(query.order_by(col(Observation.id)))).scalars().all()


async def begin_generation(session: AsyncSession, log: Log, made_by: str) -> None:
    """A new, empty generation becomes the live one; the log is locked."""
    newest = select(func.max(col(Generation.number))).where(col(Generation.log_id) == log.id)
    number = int((await session.execute(newest)).scalar_one()) + 1
    session.add(Generation(log_id=log.id, number=number, space_id=log.space_id, made_by=made_by, parent=log.generation))
    log.generation = number
    await session.flush()


_KEEP_CORRECTING = text("""
UPDATE observations AS correction SET supersedes = corrected.id
FROM observations AS before, observations AS corrected
WHERE correction.log_id = :log AND correction.generation = :generation AND before.id = ANY (correction.sources)
  AND corrected.log_id = :log AND corrected.generation = :generation AND before.supersedes = ANY (corrected.sources)
  AND corrected.id <> correction.id
""")


async def keep_correcting(session: AsyncSession, log: Log) -> None:
    """A line of the live generation whose source corrected another corrects what that other has become."""
    await session.execute(_KEEP_CORRECTING, {"log": log.id, "generation": log.generation})


def carried(row: Observation, generation: int) -> Observation:
    """A line as it stands in a later generation, which did not change it."""
    kept = row.model_dump(exclude={"id", "created_at", "generation", "sources"})
    return Observation(**kept, generation=generation, sources=[row.id])


async def generations(session: AsyncSession, log_id: int) -> Sequence[Generation]:
    """Every kept generation of a log, oldest first."""
    query = select(Generation).where(col(Generation.log_id) == log_id).order_by(col(Generation.number))
    return (await session.execute(query)).scalars().all()
