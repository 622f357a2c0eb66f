"""How governance stands over all spaces: what is not sealed yet, what is past its term and still there, who is being erased."""

from datetime import timedelta
from typing import NamedTuple

from models.database import Connection
from models.kept import KEPT


class Governed(NamedTuple):
    """Numbers, and how long the first of each has waited; zero where there is none.

    `expired_for` is how long the oldest row that a sweep should have deleted has been past its term. What is held is not
    among it.
    """

    receipts_unsealed: int
    unsealed_for: timedelta
    expired_for: timedelta
    erasures: int
    erasing_for: timedelta


async def governed(connection: Connection) -> Governed:
    """Looks by indexes alone. The transaction sees every space."""
    return Governed(*await connection.fetchrow(_GOVERNED))


_UNHELD = {
    "turns": "AND t.subject_id NOT IN (SELECT subject_id FROM holds) AND t.log_id NOT IN (SELECT id FROM held_logs)",
    "observations": "AND t.subject_id NOT IN (SELECT subject_id FROM holds)",
}
_LATE = " UNION ALL ".join(
    f"""
    SELECT horizon(r.space_id, r.data_set) - t.{kept.age} AS late FROM retention r CROSS JOIN LATERAL (
        SELECT {kept.age} FROM {kept.table} t
        WHERE t.space_id = r.space_id AND t.{kept.age} <= horizon(r.space_id, '{data_set}') {_UNHELD.get(data_set, "")}
        ORDER BY t.{kept.age} LIMIT 1) t
    WHERE r.data_set = '{data_set}'
    """  # noqa: S608 - constants
    for data_set, kept in KEPT.items()
    if kept.age is not None
)
_GOVERNED = f"""
WITH held_logs AS (
    SELECT l.id FROM holds h JOIN logs l ON l.space_id = h.space_id AND l.subject_id = h.subject_id
), unsealed AS (
    SELECT count(*) AS receipts, now() - min(at) AS since FROM receipts WHERE seal IS NULL
), erasing AS (
    SELECT count(*) AS erasures, now() - min(accepted_at) AS since FROM erasures WHERE state <> 'completed'
), expired AS ({_LATE})
SELECT unsealed.receipts, greatest(unsealed.since, interval '0') AS unsealed_for,
    coalesce((SELECT max(late) FROM expired), interval '0') AS expired_for,
    erasing.erasures, greatest(erasing.since, interval '0') AS erasing_for
FROM unsealed CROSS JOIN erasing
"""  # noqa: S608 - constants
