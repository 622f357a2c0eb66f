"""Holds: a person's data must not be deleted, whoever asks. What is past its term stays unserved, and stays."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Column, Uuid
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection

# For sweeps, whose space is $1: what they pass over is what the tables' own policies would not let them delete. A turn is
# kept for whoever spoke, and for whose log it is in.
_OF_THE_HELD = "(SELECT h.subject_id FROM holds h WHERE h.space_id = $1)"
_LOGS_OF_THE_HELD = """(
    SELECT l.id FROM holds h JOIN logs l ON l.space_id = h.space_id AND l.subject_id = h.subject_id WHERE h.space_id = $1)"""
UNHELD = f"subject_id NOT IN {_OF_THE_HELD}"
UNHELD_LOG = f"log_id NOT IN {_LOGS_OF_THE_HELD}"


class Hold(SQLModel, table=True):
    """The tables' own DELETE policies go by these rows, for raw SQL as well."""

    __tablename__ = "holds"

    space_id: int = space(primary_key=True)
    subject_id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    actor: str
    placed_at: datetime = created()


async def held(connection: Connection, space_id: int, subjects: Sequence[UUID]) -> bool:
    """Whether one of the subjects is held."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM holds WHERE space_id = $1 AND subject_id = ANY ($2::uuid[]))",
            *(space_id, list(subjects)),
        )
    )


async def place(connection: Connection, space_id: int, subject: UUID, actor: str) -> bool:
    """Holds a subject; False when it is held already. The subject's row is locked against an erasure meanwhile."""
    done = await connection.execute(
        "INSERT INTO holds (space_id, subject_id, actor) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        *(space_id, subject, actor),
    )
    return bool(done == "INSERT 0 1")


async def lift(connection: Connection, space_id: int, subject: UUID) -> bool:
    """Ends a hold; False when there was none."""
    done = await connection.execute("DELETE FROM holds WHERE space_id = $1 AND subject_id = $2", space_id, subject)
    return bool(done == "DELETE 1")
