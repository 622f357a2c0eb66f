"""Holds: a person's data must not be deleted, whoever asks. What is past its term stays unserved, and stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Column, Uuid
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection
from models.subject import closure

# For sweeps, whose space is $1: what they pass over is what the tables' own policies would not let them delete. A turn is
# kept for whoever spoke, and for whose log it is in.
_OF_THE_HELD = "(SELECT h.subject_id FROM holds h WHERE h.space_id = $1)"
_LOGS_OF_THE_HELD = """(
    SELECT l.id FROM holds h JOIN logs l ON l.space_id = h.space_id AND l.subject_id = h.subject_id WHERE h.space_id = $1)"""
UNHELD = f"subject_id NOT IN {_OF_THE_HELD}"
UNHELD_LOG = f"log_id NOT IN {_LOGS_OF_THE_HELD}"


class Hold(SQLModel, table=True):
    """One subject that a hold covers: the one that it was placed on (`named`), or whoever is the same person.

    The tables' own DELETE policies go by these rows, for raw SQL as well.
    """

    __tablename__ = "holds"

    space_id: int = space(primary_key=True)
    subject_id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    named: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    actor: str
    placed_at: datetime = created()


class Nobody(Exception):
    """There is no such person, or not any more."""


class BeingErased(Exception):
    """The person, or a conversation of theirs, is being erased: a hold comes too late for it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A hold: on whom, by whom, since when, and whom it covers."""

    named: UUID
    actor: str
    placed_at: datetime
    covers: Sequence[UUID]


async def place(connection: Connection, space: int, subject: UUID, actor: str) -> bool:
    """Holds a person, by one of their subjects; False when that one's hold stands already. Nobody, BeingErased."""
    await keep_still(connection, space, alone=True)
    people = await closure(connection, space, subject)
    if await connection.fetchval(_ERASING, space, [one.hex for one in (subject, *people)]):
        raise BeingErased
    if not people:
        raise Nobody
    done = await connection.execute(_COVER, space, people, subject, actor)
    return bool(done != "INSERT 0 0")


async def lift(connection: Connection, space: int, subject: UUID) -> bool:
    """Ends the hold that was placed on a subject; False when there was none."""
    await keep_still(connection, space, alone=True)
    done = await connection.execute("DELETE FROM holds WHERE space_id = $1 AND named = $2", space, subject)
    return bool(done != "DELETE 0")


async def spread(connection: Connection, space: int, subject: UUID) -> None:
    """Every hold on anybody of a person covers all of them: for who was just confirmed to be the same one."""
    people = await closure(connection, space, subject)
    await connection.execute(_SPREAD, space, people)


async def listed(connection: Connection, space: int) -> list[Placed]:
    """The space's holds, oldest first."""
    rows = await connection.fetch(
        "SELECT named, min(actor) AS actor, min(placed_at) AS placed_at, array_agg(subject_id ORDER BY subject_id) AS covers"
        " FROM holds WHERE space_id = $1 GROUP BY named ORDER BY 3, 1",
        space,
    )
    return [Placed(row["named"], row["actor"], row["placed_at"], row["covers"]) for row in rows]


async def held(connection: Connection, space: int, subjects: Sequence[UUID]) -> bool:
    """Whether one of the subjects is held."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM holds WHERE space_id = $1 AND subject_id = ANY ($2::uuid[]))",
            *(space, list(subjects)),
        )
    )


async def shares_turns(connection: Connection, space: int, logs: Sequence[int], conversations: Sequence[int]) -> bool:
    """Whether somebody who is held has spoken in one of the logs, or has one of the conversations in their own."""
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM holds WHERE space_id = $1)", space):
        return False
    return bool(await connection.fetchval(_SHARES, space, list(logs), list(conversations), timeout=_ALL_TURNS))


async def keep_still(connection: Connection, space: int, *, alone: bool) -> None:
    """Until the transaction ends no hold of the space comes or goes, and nobody becomes the same person as another.

    `alone` for who places, lifts or links; the others (those who erase) go side by side.
    """
    shared = "" if alone else "_shared"
    await connection.execute(f"SELECT pg_advisory_xact_lock{shared}(hashtext('afterturn/holds'), $1)", space)


_ALL_TURNS = 3600.0  # seconds: it may pass over whatever somebody ever said

_ERASING = """
SELECT EXISTS (
    SELECT FROM erasures WHERE space_id = $1
        AND (target->'subjects' ?| $2::text[] OR state <> 'completed' AND target->'owners' ?| $2::text[]))
"""

_COVER = """
INSERT INTO holds (space_id, subject_id, named, actor) SELECT $1, one, $3, $4 FROM unnest($2::uuid[]) AS one
ON CONFLICT DO NOTHING
"""

_SPREAD = """
INSERT INTO holds (space_id, subject_id, named, actor, placed_at)
SELECT DISTINCT $1::bigint, one, h.named, h.actor, h.placed_at
FROM holds h CROSS JOIN unnest($2::uuid[]) AS one WHERE h.space_id = $1 AND h.subject_id = ANY ($2::uuid[])
ON CONFLICT DO NOTHING
"""

_SHARES = """
SELECT EXISTS (
    SELECT FROM holds h JOIN conversations c ON c.space_id = $1 AND c.subject_id = h.subject_id
        JOIN turns t ON t.conversation_id = c.id WHERE h.space_id = $1 AND t.log_id = ANY ($2::bigint[])
) OR EXISTS (
    SELECT FROM holds h JOIN logs l ON l.space_id = $1 AND l.subject_id = h.subject_id
        JOIN turns t ON t.log_id = l.id WHERE h.space_id = $1 AND t.conversation_id = ANY ($3::bigint[])
)
"""
