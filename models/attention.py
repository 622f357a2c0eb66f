"""Logs that wait and that nobody will come for: none, unless a row of `work` was lost. The scheduler walks past them."""

from typing import NamedTuple

from models.database import Connection

_WALK = """
WITH passed AS (
    SELECT id, space_id FROM logs WHERE pending_turns > 0 AND id > $1 ORDER BY id LIMIT $2
)
SELECT p.id, p.space_id, NOT EXISTS (
    SELECT FROM work w WHERE w.kind = 'observe' AND w.dedup = 'log:' || p.id AND w.state = 'ready'
    UNION ALL
    SELECT FROM work w WHERE w.scope = 'log:' || p.id AND w.state = 'claimed'
) AS unattended
FROM passed p ORDER BY p.id
"""


class Unattended(NamedTuple):
    """A log with pending turns and no work."""

    space: int
    log_id: int


async def walk(connection: Connection, after: int, most: int) -> tuple[int, list[Unattended]]:
    """Looks at the next logs that wait, by id. Answers where to go on (0: from the start) and those without work."""
    rows = await connection.fetch(_WALK, after, most)
    found = [Unattended(row["space_id"], row["id"]) for row in rows if row["unattended"]]
    return (rows[-1]["id"] if len(rows) == most else 0), found
