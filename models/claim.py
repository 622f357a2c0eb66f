"""Claiming work: for a while, by one worker, spaces in turn, one job per scope.

Every claim is one statement, so no worker that is paused or dies can hold a lock over others. Claims of one queue
class are taken one at a time, under a lock that lives as long as the statement: the cap per space is exact but for a
claim that commits between another's snapshot and its look at the lock, which is microseconds.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from asyncpg import Record, UniqueViolationError

from models.database import Connection
from models.due import CANDIDATES, FREE, SPACES, WINDOW
from models.work import Claim


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a worker claims: for whom, what, for how long, and how many of one space over all workers."""

    owner: str
    queue_class: str
    kinds: tuple[str, ...]
    lasts: timedelta
    per_space: int


class Rung(NamedTuple):
    """What a bell says: the row, and the epoch at which it was ready."""

    id: int
    epoch: int


class Crowded(Exception):
    """Another worker is claiming in this class just now: ask again in a moment."""


# The planner's numbers about a queue are always old, so the joins leave it no choice but the keys.
_CLAIM = """
WITH RECURSIVE turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('work claim'), hashtext($6)) AS mine
), {candidates}, alone AS (
    SELECT DISTINCT ON (scope) id, space_id, run_at FROM candidate ORDER BY scope, run_at, id
), running AS (
    SELECT space_id, count(*) AS jobs FROM work
    WHERE state = 'claimed' AND kind = ANY($1::text[]) AND space_id IN (SELECT space_id FROM alone) GROUP BY space_id
), ranked AS (
    SELECT id, run_at, coalesce(jobs, 0) + row_number() OVER (PARTITION BY space_id ORDER BY run_at, id) AS nth
    FROM alone LEFT JOIN running USING (space_id)
), wanted AS (
    SELECT id FROM ranked WHERE nth <= $2::bigint ORDER BY nth, run_at, id
), taken AS (
    SELECT l.id FROM wanted CROSS JOIN LATERAL (
        SELECT w.id FROM work w WHERE w.id = wanted.id AND w.state = 'ready' FOR UPDATE SKIP LOCKED) l
    LIMIT $3
), claimed AS (
    UPDATE work w SET state = 'claimed', attempt = attempt + 1, epoch = epoch + 1, owner = $7,
        claimed_until = now() + $8::interval
    WHERE w.id = ANY (ARRAY(SELECT id FROM taken))
    RETURNING w.id, w.epoch, w.kind, w.queue_class, w.space_id, w.scope, w.attempt, w.crashes, w.waits,
        w.payload::text AS payload, w.progress::text AS progress, w.trace_parent, w.last_error
)
SELECT turn.mine, claimed.* FROM turn LEFT JOIN claimed ON true
"""

_CANDIDATES_RUNG = f"""
candidate AS MATERIALIZED (
    SELECT w.* FROM unnest($4::bigint[], $5::bigint[]) AS b (id, epoch) CROSS JOIN LATERAL (
        SELECT id, scope, space_id, run_at FROM work w
        WHERE (SELECT mine FROM turn) AND w.id = b.id AND w.epoch = b.epoch AND w.state = 'ready'
            AND w.kind = ANY ($1) AND w.run_at <= now() AND {FREE}
        OFFSET 0) w
)
"""  # noqa: S608 - the part that is put in is a constant

_CLAIM_RUNG = _CLAIM.replace("{candidates}", _CANDIDATES_RUNG)
_CLAIM_DUE = _CLAIM.replace("{candidates}", CANDIDATES)


async def rung(connection: Connection, terms: Terms, bells: Sequence[Rung], limit: int) -> list[Claim]:
    """Claims those of the rows that are ready and due at that very epoch, at most `limit`; Crowded: ask again."""
    ids, epochs = [bell.id for bell in bells], [bell.epoch for bell in bells]
    return await _claim(connection, _CLAIM_RUNG, terms, limit, ids, epochs)


async def due(connection: Connection, terms: Terms, limit: int) -> list[Claim]:
    """Claims at most `limit` of what is due, spaces in turn; Crowded: ask again."""
    return await _claim(connection, _CLAIM_DUE, terms, limit, WINDOW + limit, SPACES)


async def _claim(connection: Connection, query: str, terms: Terms, limit: int, *more: object) -> list[Claim]:
    what = (terms.kinds, terms.per_space, limit)
    try:
        rows = await connection.fetch(query, *what, *more, terms.queue_class, terms.owner, terms.lasts)
    except UniqueViolationError:  # the scope was claimed beside us, by way of another queue class
        raise Crowded from None
    if not rows[0]["mine"]:
        raise Crowded
    return [_read(row) for row in rows if row["id"] is not None]


def _read(row: Record) -> Claim:
    _, work_id, epoch, kind, queue_class, space_id, scope, attempt, crashes, waits, *rest = row
    payload, progress, trace_parent, last_error = rest
    named = (work_id, epoch, kind, queue_class, space_id, scope, attempt, crashes, waits)
    how_far = json.loads(progress) if progress != "{}" else {}
    return Claim(*named, json.loads(payload), how_far, trace_parent, last_error)


class Renewed(NamedTuple):
    """One claim that is still held; `stop` when somebody asked the work to stop."""

    id: int
    epoch: int
    stop: bool


_RENEW = """
UPDATE work w SET claimed_until = now() + $4::interval
FROM unnest($1::bigint[], $2::bigint[]) AS c (id, epoch)
WHERE w.id = c.id AND w.epoch = c.epoch AND w.state = 'claimed' AND w.owner = $3
RETURNING w.id, w.epoch, w.cancel_requested
"""


async def renew(connection: Connection, owner: str, held: Sequence[Claim], lasts: timedelta) -> list[Renewed]:
    """Prolongs the claims that are still held, all in one statement; whoever is missing was taken over."""
    ids, epochs = [claim.id for claim in held], [claim.epoch for claim in held]
    return [Renewed(*row) for row in await connection.fetch(_RENEW, ids, epochs, owner, lasts)]
