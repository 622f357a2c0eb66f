"""What is kept about a person, in numbers: rows by data set, and dates. Never a text, never a handle."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from models import link
from models.database import Connection
from models.dataset import Target
from models.registry import DATA_SETS


@dataclass(frozen=True, slots=True)
class Profile:
    """`people` are the whole closure; `unconfirmed` others are linked with it by nobody's confirmation."""

    people: Sequence[UUID]
    unconfirmed: int
    counts: dict[str, int]
    known_since: datetime
    last_turn_at: datetime | None


_DATES = """
SELECT (SELECT min(created_at) FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[])) AS known_since,
       (SELECT max(t.created_at) FROM unnest($3::bigint[]) AS l (id), LATERAL (
            SELECT created_at FROM turns WHERE log_id = l.id AND space_id = $1 ORDER BY seq DESC LIMIT 1) t) AS last_turn_at
"""


async def profile(connection: Connection, space: int, people: Sequence[UUID]) -> Profile:
    """Of a closure that is not empty. Rows past their term are not counted."""
    target = await _target(connection, space, people)
    dates = await connection.fetchrow(_DATES, space, list(people), list(target.logs))
    return Profile(
        people=people,
        unconfirmed=await link.unconfirmed(connection, space, people),
        counts={one.name: await one.count(connection, target) for one in DATA_SETS},
        known_since=dates["known_since"],
        last_turn_at=dates["last_turn_at"],
    )


async def _target(connection: Connection, space: int, people: Sequence[UUID]) -> Target:
    ids = {}
    for table in ("logs", "conversations"):
        query = f"SELECT id FROM {table} WHERE space_id = $1 AND subject_id = ANY ($2::uuid[])"  # noqa: S608 - constants
        ids[table] = tuple(row["id"] for row in await connection.fetch(query, space, list(people)))
    return Target(space, subjects=tuple(people), logs=ids["logs"], conversations=ids["conversations"])
