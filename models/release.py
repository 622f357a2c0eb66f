"""Releasing claimed work: to be tried again, handed back by a worker that stops, given up, or taken from the dead."""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from asyncpg import UniqueViolationError

from models.database import Connection
from models.work import Added, Claim

# A ready twin takes over: the earlier time, and what was learnt about how often it fails.
_PUT_BACK = """
WITH mine AS MATERIALIZED (
    SELECT id, kind, dedup, cancel_requested, attempt - $5::int AS attempt, crashes + $6::int AS crashes,
           CASE WHEN last_error = $4 OR $4 IS NULL THEN waits ELSE 0 END + $7::int AS waits, now() + $3::interval AS run_at
    FROM work WHERE id = $1 AND epoch = $2 AND state = 'claimed' AND ($6 = 0 OR claimed_until < now())
    FOR UPDATE
), twin AS (
    UPDATE work t SET run_at = least(t.run_at, m.run_at), last_error = coalesce($4, t.last_error),
        attempt = greatest(t.attempt, m.attempt), crashes = greatest(t.crashes, m.crashes), waits = greatest(t.waits, m.waits)
    FROM mine m WHERE t.kind = m.kind AND t.dedup = m.dedup AND t.state = 'ready' AND NOT m.cancel_requested
    RETURNING t.id, t.epoch, t.run_at, t.queue_class
), back AS (
    UPDATE work w SET attempt = m.attempt, crashes = m.crashes, waits = m.waits, run_at = m.run_at,
        last_error = coalesce($4, last_error), owner = NULL, claimed_until = NULL, rung_at = NULL,
        state = CASE WHEN m.cancel_requested THEN 'cancelled' WHEN EXISTS (SELECT FROM twin) THEN 'merged' ELSE 'ready' END,
        finished_at = CASE WHEN m.cancel_requested OR EXISTS (SELECT FROM twin) THEN clock_timestamp() END
    FROM mine m WHERE w.id = m.id
    RETURNING w.id, w.epoch, w.run_at, w.queue_class, w.state
)
SELECT id, epoch, run_at, queue_class, run_at <= now() AS due FROM twin
UNION ALL SELECT id, epoch, run_at, queue_class, run_at <= now() FROM back WHERE state = 'ready'
"""


class _Toll(NamedTuple):
    """What a release adds to the row's counters. `crashed`: only if the claim has expired; `waited`: in a row, by error."""

    uncounted: int = 0
    crashed: int = 0
    waited: int = 0


async def retry_later(
    connection: Connection, claim: Claim, delay: timedelta, error: str, *, counts: bool
) -> Added | None:
    """Makes claimed work ready again, due after `delay`; `error` is a code. Not counted: it waited, and gave no answer.

    Answers what is ready now, this row or the ready twin that it was merged into; None when the row was not held any
    more, or was asked to stop and is cancelled. A statement of its own: call it outside transactions.
    """
    toll = _Toll(waited=1) if counts else _Toll(uncounted=1, waited=1)
    return await _put_back(connection, claim.id, claim.epoch, delay, error, toll)


async def give_back(connection: Connection, claim: Claim) -> Added | None:
    """As `retry_later`, at once and as if it had never been claimed: for a worker that stops."""
    return await _put_back(connection, claim.id, claim.epoch, timedelta(0), None, _Toll(uncounted=1))


async def bury(connection: Connection, claim: Claim, error: str) -> bool:
    """Gives the work up; it stays listed as dead, with `error`, a code. False when it was not held any more."""
    return bool(await connection.fetchval(_BURY, claim.id, claim.epoch, error))


_BURY = """
UPDATE work SET state = 'dead', last_error = $3, finished_at = clock_timestamp()
WHERE id = $1 AND epoch = $2 AND state = 'claimed' RETURNING true
"""

_EXPIRED = """
SELECT id, epoch, kind, crashes FROM work WHERE state = 'claimed' AND claimed_until < now()
ORDER BY claimed_until LIMIT $1
"""

_BURY_EXPIRED = """
UPDATE work SET state = 'dead', last_error = 'crashed', crashes = crashes + 1, finished_at = clock_timestamp()
WHERE id = $1 AND epoch = $2 AND state = 'claimed' AND claimed_until < now()
"""


async def recover_expired(connection: Connection, crash_limits: Mapping[str, int], *, limit: int = 1000) -> list[Added]:
    """Takes back what dead workers held; answers what is ready now. Safe to run twice at once.

    A kind's work is given up when it has killed as many workers as `crash_limits` says; a kind without a limit never.
    The first crash costs no delay; from the second on the work waits, so that it cannot keep killing the fleet.
    """
    recovered = []
    for row in await connection.fetch(_EXPIRED, limit):
        crashes = row["crashes"] + 1
        if crashes >= crash_limits.get(row["kind"], crashes + 1):
            await connection.execute(_BURY_EXPIRED, row["id"], row["epoch"])
        else:
            added = await _put_back(connection, row["id"], row["epoch"], _cooling(crashes), "crashed", _CRASHED)
            recovered += [added] if added else []
    return recovered


_CRASHED = _Toll(crashed=1)


def _cooling(crashes: int) -> timedelta:
    return timedelta(seconds=0 if crashes == 1 else min(600, 5 * 4 ** min(crashes - 2, 10)))


async def _put_back(
    connection: Connection, work_id: int, epoch: int, delay: timedelta, error: str | None, toll: _Toll
) -> Added | None:
    for left in reversed(range(10)):
        try:
            row = await connection.fetchrow(_PUT_BACK, work_id, epoch, delay, error, *toll)
        except UniqueViolationError:  # a twin was inserted beside us: the next look sees it and merges
            if not left:
                raise
        else:
            return Added(*row) if row else None
    raise AssertionError("the loop returns or raises")
