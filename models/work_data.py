"""Work as a data set: the letters that name a person's logs, and what the model cost over them."""

from collections.abc import AsyncIterator
from typing import ClassVar

from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import instant, number

# Work is on logs by its scope; see jobs/letters.py.
_MINE = "w.space_id = $1 AND w.scope = ANY (ARRAY(SELECT 'log:' || id FROM unnest($2::bigint[]) AS l (id)))"

_ERASE = f"""
WITH ended AS (
    DELETE FROM work w WHERE w.id IN (SELECT id FROM work w WHERE {_MINE} LIMIT $3) RETURNING id
), unlinked AS (
    UPDATE model_usage u SET work_id = 0 FROM ended WHERE u.space_id = $1 AND u.work_id = ended.id
)
SELECT count(*) FROM ended
"""  # noqa: S608 - a constant


class WorkData:
    """Deleting a row that somebody has claimed ends the claim: whatever that run would write is rolled back.

    With its work goes what links a row of usage to a person; the row stays, for the space's sums.
    """

    name: ClassVar[str] = "work"
    tables: ClassVar[Tables] = {
        "work": {
            "kind": Holds.CODE,
            "queue_class": Holds.CODE,
            "scope": Holds.ID,
            "dedup": Holds.ID,
            "state": Holds.CODE,
            "owner": Holds.CODE,
            "payload": Holds.NUMBERS,
            "progress": Holds.NUMBERS,
            "last_error": Holds.CODE,
            "trace_parent": Holds.ID,
        }
    }

    async def count(self, connection: Connection, target: Target) -> int:
        query = f"SELECT count(*) FROM work w WHERE {_MINE}"  # noqa: S608 - constants
        return int(await connection.fetchval(query, target.space, list(target.logs)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        if not target.logs:
            return 0
        return int(await connection.fetchval(_ERASE, target.space, list(target.logs), most))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        query = f"SELECT * FROM work w WHERE {_MINE} ORDER BY id"  # noqa: S608 - constants
        async for row in connection.cursor(query, target.space, list(target.logs)):
            yield {
                "id": row["id"],
                "kind": row["kind"],
                "scope": row["scope"],
                "state": row["state"],
                "attempts": row["attempt"],
                "due_at": instant(row["run_at"]),
                "finished_at": instant(row["finished_at"]),
            }

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        query = """
            DELETE FROM work WHERE id IN (
                SELECT id FROM work
                WHERE space_id = $1 AND finished_at <= (SELECT horizon($1, 'job_records')) AND state <> 'dead'
                ORDER BY finished_at LIMIT $2)
        """
        return number(await connection.execute(query, space, most))


_USAGE = f"""
FROM model_usage u WHERE u.space_id = $1 AND u.work_id IN (SELECT id FROM work w WHERE {_MINE})
"""  # noqa: S608 - constants


class UsageData:
    """What the model cost, by job: of a person as long as the work is that it was for."""

    name: ClassVar[str] = "model_usage"
    tables: ClassVar[Tables] = {"model_usage": {"job": Holds.CODE, "model": Holds.CODE, "outcome": Holds.CODE}}

    async def count(self, connection: Connection, target: Target) -> int:
        return int(await connection.fetchval(f"SELECT count(*) {_USAGE}", target.space, list(target.logs)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        if not target.logs:
            return 0
        query = f"UPDATE model_usage SET work_id = 0 WHERE id IN (SELECT u.id {_USAGE} LIMIT $3)"  # noqa: S608 - a constant
        return number(await connection.execute(query, target.space, list(target.logs), most))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        query = f"SELECT u.* {_USAGE} ORDER BY u.id"
        async for row in connection.cursor(query, target.space, list(target.logs)):
            yield {
                "work_id": row["work_id"],
                "job": row["job"],
                "model": row["model"],
                "outcome": row["outcome"],
                "input_tokens": row["input_tokens"],
                "output_tokens": row["output_tokens"],
                "at": instant(row["created_at"]),
            }

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        query = """
            DELETE FROM model_usage WHERE id IN (
                SELECT id FROM model_usage WHERE space_id = $1 AND created_at <= (SELECT horizon($1, 'model_usage'))
                ORDER BY created_at LIMIT $2)
        """
        return number(await connection.execute(query, space, most))


WORK, MODEL_USAGE = WorkData(), UsageData()
