"""The backlog: work that waits, as the scheduler rings it again, as operators see it, and as it is thrown away."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from models.database import Connection
from models.due import CANDIDATES, SPACES, WINDOW
from models.log import Rhythm
from models.work import Added

_UNRUNG = f"""
WITH RECURSIVE turn AS (SELECT true AS mine), {CANDIDATES}, ranked AS (
    SELECT c.id, c.run_at, row_number() OVER (PARTITION BY c.space_id ORDER BY c.run_at, c.id) AS nth
    FROM (SELECT DISTINCT id, space_id, run_at FROM candidate) c CROSS JOIN LATERAL (SELECT rung_at FROM work w WHERE w.id = c.id OFFSET 0) w
    WHERE w.rung_at IS NULL OR w.rung_at < now() - $6::interval
), picked AS (
    SELECT l.id FROM (SELECT id FROM ranked ORDER BY nth, run_at, id) r CROSS JOIN LATERAL (
        SELECT w.id FROM work w WHERE w.id = r.id AND w.state = 'ready' FOR UPDATE SKIP LOCKED) l
    LIMIT $3
)
UPDATE work w SET rung_at = now() WHERE w.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING w.id, w.epoch, w.run_at, w.queue_class, true AS due
"""  # noqa: S608 - the part that is put in is a constant


async def unrung(
    connection: Connection, kinds: Sequence[str], limit: int, *, quiet: timedelta = timedelta(seconds=10)
) -> list[Added]:
    """Notes and answers what is due and has had no bell for so long, at most `limit` rows, spaces in turn."""
    rows = await connection.fetch(_UNRUNG, kinds, limit, limit, WINDOW + limit, SPACES, quiet)
    return [Added(*row) for row in rows]


class Depth(NamedTuple):
    """How much work of a class is in a state. `oldest`: how long the first of it has been due, or claimed, or dead."""

    queue_class: str
    state: str
    rows: int
    due: int
    oldest: timedelta


_DEPTHS = """
SELECT queue_class, state, count(*) AS rows, count(*) FILTER (WHERE run_at <= now()) AS due,
       greatest(now() - min(run_at), interval '0') AS oldest
FROM work WHERE state IN ('ready', 'claimed', 'dead') AND ($1::bigint IS NULL OR space_id = $1)
GROUP BY queue_class, state ORDER BY queue_class, state
"""


async def depths(connection: Connection, space: int | None = None) -> list[Depth]:
    """What is unfinished, by class and state; of one space, or of all (None, for operators of the deployment)."""
    return [Depth(*row) for row in await connection.fetch(_DEPTHS, space)]


class PendingLogs(NamedTuple):
    """Logs with turns that are not observed: how many, how many of them are due, and what they hold.

    `lag` is how long the log that waits longest has been due.
    """

    pending: int
    due: int
    turns: int
    tokens: int
    oldest: datetime | None
    lag: timedelta


_PENDING_LOGS = """
WITH pending AS (
    SELECT pending_turns, pending_tokens, oldest_pending_at,
           CASE WHEN flush_through > observed_through OR pending_tokens > $1::bigint THEN oldest_pending_at
                ELSE oldest_pending_at + $2::interval END AS due_at
    FROM logs WHERE pending_turns > 0
)
SELECT count(*) AS pending, count(*) FILTER (WHERE due_at <= now()) AS due,
       coalesce(sum(pending_turns), 0)::bigint AS turns, coalesce(sum(pending_tokens), 0)::bigint AS tokens,
       min(oldest_pending_at) AS oldest, coalesce(now() - min(due_at) FILTER (WHERE due_at <= now()), interval '0') AS lag
FROM pending
"""


async def pending_logs(connection: Connection, pace: Rhythm) -> PendingLogs:
    """What waits to be observed, over the spaces that the transaction sees."""
    return PendingLogs(*await connection.fetchrow(_PENDING_LOGS, pace.threshold, pace.max_age))


_STRANGERS = """
WITH RECURSIVE kinds (kind) AS (
    SELECT min(kind) FROM work WHERE state = 'ready'
    UNION ALL
    SELECT (SELECT min(w.kind) FROM work w WHERE w.state = 'ready' AND w.kind > k.kind) FROM kinds k WHERE k.kind IS NOT NULL
)
SELECT kind FROM kinds WHERE kind IS NOT NULL AND kind <> ALL($1::text[])
"""


async def strangers(connection: Connection, known: Sequence[str]) -> list[str]:
    """Kinds that wait though nobody here knows them: a newer release's, until that release runs."""
    return [row["kind"] for row in await connection.fetch(_STRANGERS, known)]


_PRUNE = """
DELETE FROM work WHERE id IN (
    SELECT id FROM work WHERE finished_at < now() - $1::interval AND finished_at IS NOT NULL AND state <> 'dead'
        AND space_id <> ALL ((SELECT spaces_with_term('job_records'))::bigint[])
    ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)
"""


async def prune(connection: Connection, older_than: timedelta, limit: int = 1000) -> int:
    """Deletes finished rows, oldest first, at most `limit`; dead ones stay until somebody revives or cancels them.

    Where a space has a term of its own, its sweep goes by that.
    """
    done: str = await connection.execute(_PRUNE, older_than, limit)
    return int(done.rsplit(" ", 1)[1])
