"""Distillations as a data set: who wanted to learn from whose turns. What was proposed goes with each of those people."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from models import distillation
from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import instant, number

_EVER = datetime(9999, 1, 1, tzinfo=UTC)
_MINE = """space_id = $1 AND (agent = $2 AND asked_at <= $5::timestamptz
    OR conversations && $3::bigint[] OR logs && $4::bigint[])"""

# The model's answer that is kept for a run of it, and the proposal, may tell of any of those whose turns were read.
_ERASE = f"""
WITH gone AS (
    DELETE FROM distillations WHERE space_id = $1 AND id = ANY (ARRAY(
        SELECT id FROM distillations WHERE {_MINE} LIMIT $6)) RETURNING id, proposal
), answers AS (
    DELETE FROM model_answers a USING gone, work w WHERE a.space_id = $1 AND a.work_id = w.id AND w.space_id = $1
        AND w.scope = 'distillation:' || replace(gone.id::text, '-', '')
), proposed AS (
    DELETE FROM proposals p USING gone WHERE p.space_id = $1 AND p.id = gone.proposal
)
SELECT count(*) FROM gone
"""  # noqa: S608 - constants


class DistillationData:
    """A request is kept while its proposal is, for it alone knows whose turns that came from."""

    name: ClassVar[str] = "distillations"
    tables: ClassVar[Tables] = {
        "distillations": {
            **dict.fromkeys(("agent", "vendor", "source", "state", "reason"), Holds.CODE),
            **dict.fromkeys(("known_as", "evidence", "proposer"), Holds.DIGEST),
            "actor": Holds.ID,
        }
    }

    async def count(self, connection: Connection, target: Target) -> int:
        """Requests of the agent, or about what the target has said."""
        query = f"SELECT count(*) FROM distillations WHERE {_MINE}"  # noqa: S608 - constants
        return int(await connection.fetchval(query, *_parts(target)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        """Deletes up to `most` of them, each with what was proposed."""
        return int(await connection.fetchval(_ERASE, *_parts(target), most))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        """Each request, oldest first."""
        query = f"SELECT * FROM distillations WHERE {_MINE} ORDER BY asked_at, id"  # noqa: S608 - constants
        async for row in connection.cursor(query, *_parts(target)):
            yield _show(row)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        """Deletes up to `most` that are finished for as long as finished work is kept."""
        query = """
            DELETE FROM distillations WHERE id = ANY (ARRAY(
                SELECT id FROM distillations d
                WHERE space_id = $1 AND finished_at <= (SELECT horizon($1, 'job_records')) AND NOT EXISTS (
                    SELECT FROM proposals p WHERE p.space_id = $1 AND p.id = d.proposal)
                ORDER BY finished_at LIMIT $2))
        """
        return number(await connection.execute(query, space, most))


def _parts(target: Target) -> tuple[Any, ...]:
    return target.space, target.agent, list(target.conversations), list(target.logs), target.before or _EVER


def _show(row: Any) -> Row:
    return {
        "id": distillation.opaque(row["id"]),
        "agent": row["agent"],
        "state": row["state"],
        "reason": row["reason"],
        "asked_at": instant(row["asked_at"]),
        "finished_at": instant(row["finished_at"]),
    }


DISTILLATIONS = DistillationData()
