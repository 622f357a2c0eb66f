"""Quarantine as a data set: which turns were set aside, by id, and what the model's answers were worth."""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import Rows, Way, instant, number, parts


def _show(row: Any, keys: Keys) -> Row:  # noqa: ARG001 - nothing of it is sealed
    return {
        "log_id": row["log_id"],
        "turn_id": row["turn_id"],
        "reason": row["reason"],
        "attempts": row["attempts"],
        "since": instant(row["created_at"]),
        "released_at": instant(row["released_at"]),
    }


_ROWS = Rows(
    name="quarantine",
    table="quarantine",
    columns={"reason": Holds.CODE, "attempts": Holds.NUMBERS},
    ways=(Way("log_id", "logs"),),
    show=_show,
    order="id",
    age="created_at",
)

_OF_CONVERSATIONS = """
    space_id = $1 AND turn_id IN (SELECT id FROM turns WHERE space_id = $1 AND conversation_id = ANY ($2::bigint[]))
"""


class QuarantineData:
    """The records about turns of a person's logs and conversations. Erased before the turns that they point at."""

    name: ClassVar[str] = _ROWS.name
    tables: ClassVar[Tables] = _ROWS.tables

    async def count(self, connection: Connection, target: Target) -> int:
        query = f"SELECT count(*) FROM quarantine WHERE space_id = $1 AND log_id <> ALL ($3::bigint[]) AND {_OF_CONVERSATIONS}"  # noqa: S608 - constants
        apart = await connection.fetchval(query, target.space, *parts(target, "conversations", "logs"))
        return await _ROWS.count(connection, target) + int(apart)

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        if gone := await _ROWS.erase(connection, target, most):
            return gone
        query = f"DELETE FROM quarantine WHERE id IN (SELECT id FROM quarantine WHERE {_OF_CONVERSATIONS} LIMIT $3)"  # noqa: S608 - a constant
        return number(await connection.execute(query, target.space, list(target.conversations), most))

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        return _ROWS.export(connection, target, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        return await _ROWS.expire(connection, space, most)


QUARANTINE = QuarantineData()
