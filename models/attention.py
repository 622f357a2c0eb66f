"""Logs that wait and that nobody will come for, or too late. The scheduler walks past them.

Nobody comes where a row of `work` was lost; too late, where the settings changed after the row was written: it keeps
the time that was right by the old ones.
"""

from datetime import datetime
from typing import NamedTuple

from models.database import Connection
from models.log import Rhythm

# Only work that waits for its time is late: what waits because something failed has its own time.
_WALK = """
WITH passed AS (
    SELECT id, space_id, CASE
        WHEN $4::interval IS NULL THEN NULL
        WHEN flush_through > observed_through OR pending_tokens > $3::bigint OR oldest_pending_at IS NULL THEN now()
        ELSE greatest(oldest_pending_at + $4::interval, now()) END AS due_at
    FROM logs WHERE pending_turns > 0 AND id > $1 ORDER BY id LIMIT $2
)
SELECT p.id, p.space_id, p.due_at, NOT EXISTS (
    SELECT FROM work w WHERE w.kind = 'observe' AND w.dedup = 'log:' || p.id AND w.state = 'ready'
    UNION ALL
    SELECT FROM work w WHERE w.scope = 'log:' || p.id AND w.state = 'claimed'
) AS unattended, EXISTS (
    SELECT FROM work w WHERE w.kind = 'observe' AND w.dedup = 'log:' || p.id AND w.state = 'ready'
        AND w.run_at > p.due_at AND coalesce(w.last_error, 'memory_off') = 'memory_off'
) AS late
FROM passed p ORDER BY p.id
"""


class Waiting(NamedTuple):
    """A log with pending turns whose work is missing (`due_at` None: give it some now), or is to run at `due_at`."""

    space: int
    log_id: int
    due_at: datetime | None


async def walk(connection: Connection, after: int, most: int, pace: Rhythm | None) -> tuple[int, list[Waiting]]:
    """Looks at the next logs that wait, by id. Answers where to go on (0: from the start), and what is to be added.

    Without `pace` memory is off, and no work is late.
    """
    terms = (None, None) if pace is None else (pace.threshold, pace.max_age)
    rows = await connection.fetch(_WALK, after, most, *terms)
    found = [
        Waiting(row["space_id"], row["id"], None if row["unattended"] else row["due_at"])
        for row in rows
        if row["unattended"] or row["late"]
    ]
    return (rows[-1]["id"] if len(rows) == most else 0), found
