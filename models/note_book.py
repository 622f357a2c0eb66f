"""A space's book of notes: what its switches say about it, and how often it has changed."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import BigInteger, Column
from sqlmodel import Field, SQLModel

from models import policy
from models.columns import space
from models.database import Connection

CEILING, PER_HOUR, REFUSALS = 500, 20, 60  # where a space says nothing else


class MemoryOff(Exception):
    """The space has no agent memory."""


class NoteBook(SQLModel, table=True):
    """`revision` counts whatever changes what some agent reads."""

    __tablename__ = "note_books"

    space_id: int = space(primary_key=True)
    revision: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="1"))


@dataclass(frozen=True, slots=True)
class Rules:
    """What the space says of its agents' notes. `regions` are those whose phone numbers count; empty: the deployment's."""

    on: bool
    human_only: bool
    ceiling: int
    per_hour: int
    refusals: int
    regions: tuple[str, ...]
    lookup_key: UUID


async def rules(connection: Connection, space_id: int) -> Rules:
    """The switches as they stand."""
    said = await policy.features(connection, space_id)
    return Rules(
        on=bool(said.get("agent_memory", False)),
        human_only=said.get("agent_memory_writes") == "human_only",
        ceiling=int(said.get("note_ceiling", CEILING)),
        per_hour=int(said.get("notes_per_hour", PER_HOUR)),
        refusals=int(said.get("refusals_per_hour", REFUSALS)),
        regions=tuple(said.get("phone_regions", ())),
        lookup_key=await connection.fetchval("SELECT lookup_key FROM spaces WHERE id = $1", space_id),
    )


async def opened(connection: Connection, space_id: int) -> Rules:
    """The switches, for whoever reads or writes; MemoryOff where agents have no memory."""
    found = await rules(connection, space_id)
    if not found.on:
        raise MemoryOff
    return found


async def turn(connection: Connection, space_id: int) -> None:
    """Something in it has changed: a block that was made before this commit does not hold any more."""
    await connection.execute(
        "INSERT INTO note_books AS b (space_id) VALUES ($1) ON CONFLICT (space_id) DO UPDATE SET revision = b.revision + 1",
        space_id,
    )


async def revision(connection: Connection, space_id: int) -> int:
    """How often it has changed."""
    found = await connection.fetchval("SELECT revision FROM note_books WHERE space_id = $1", space_id)
    return int(found or 0)
