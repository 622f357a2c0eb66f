"""Observations as a data set: what was condensed from a person's turns, in every generation.

Lines about one conversation may stand in a log that stays: a person's conversation in somebody else's log, or a single
conversation that is erased. They are found by their evidence, and by way of `sources` in what was rewritten from them.
"""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from models.content import open_line
from models.database import Connection
from models.dataset import Holds, Keys, Place, Row, Tables, Target
from models.observation import Observation
from models.retraction import retract
from models.rows import Rows, Way, instant, number


def _show(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    line = None if key is None else open_line(Observation(**dict(row)), key)
    days = None if line is None or line.refers_to is None else [str(line.refers_to.start), str(line.refers_to.end)]
    return {
        "id": row["id"],
        "log_id": row["log_id"],
        "generation": row["generation"],
        "text": None if line is None else line.text,
        "kind": row["kind"],
        "priority": row["priority"],
        "observed_at": instant(row["observed_at"] if line is None else line.observed_at),
        "refers_to": days,
        "evidence": row["evidence"],
        "sources": row["sources"],
        "supersedes": row["supersedes"],
        "born_at": instant(row["born_at"]),
        "written_at": instant(row["created_at"]),
    }


_ROWS = Rows(
    name="observations",
    table="observations",
    columns={"sealed": Holds.SEALED, "digest": Holds.DIGEST, "kind": Holds.CODE, "priority": Holds.CODE},
    ways=(Way("log_id", "logs", "generation"),),
    show=_show,
    order="log_id, generation, id",
    age="born_at",
)

_TOUCHED = """
WITH RECURSIVE said AS MATERIALIZED (
    SELECT log_id, array_agg(id) AS turns FROM turns
    WHERE space_id = $1 AND conversation_id = ANY ($2::bigint[]) AND log_id <> ALL ($3::bigint[]) GROUP BY log_id
), touched AS (
    SELECT o.id, o.log_id FROM observations o JOIN said ON said.log_id = o.log_id
    WHERE o.space_id = $1 AND o.evidence && said.turns
    UNION
    SELECT o.id, o.log_id FROM touched t JOIN observations o ON o.log_id = t.log_id AND t.id = ANY (o.sources)
    WHERE o.space_id = $1
)
"""


class ObservationData:
    """The lines of a person's logs; and those of other logs that a conversation touches, counted while its turns are."""

    name: ClassVar[str] = _ROWS.name
    tables: ClassVar[Tables] = _ROWS.tables

    async def count(self, connection: Connection, target: Target) -> int:
        mine = await _ROWS.count(connection, target)
        return mine + (await self._touched(connection, target) if target.conversations else 0)

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        if gone := await _ROWS.erase(connection, target, most):
            return gone
        return await retract(connection, target)  # a log is small by design, and half a retraction would be none

    async def walk(self, connection: Connection, target: Target, place: Place, most: int) -> tuple[int, Place | None]:
        return await _ROWS.by_log(connection, target, place, most)

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        return _ROWS.export(connection, target, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        query = """
            DELETE FROM observations WHERE space_id = $1 AND id = ANY (ARRAY(
                SELECT o.id FROM observations o WHERE o.space_id = $1 AND (
                        o.born_at <= (SELECT horizon($1, 'observations'))
                        OR (SELECT with_source FROM retention WHERE space_id = $1 AND data_set = 'observations')
                            AND NOT EXISTS (SELECT FROM turns t WHERE t.id = ANY (o.evidence)
                                AND t.created_at > (SELECT horizon($1, 'turns')))
                        OR EXISTS (SELECT FROM generations g JOIN logs l ON l.id = g.log_id
                            WHERE g.log_id = o.log_id AND g.number = o.generation AND l.generation <> g.number
                                AND g.created_at <= (SELECT horizon($1, 'generations'))))
                    AND NOT EXISTS (SELECT FROM holds h WHERE h.space_id = $1 AND h.subject_id = o.subject_id)
                LIMIT $2))
        """
        return number(await connection.execute(query, space, most))

    async def _touched(self, connection: Connection, target: Target) -> int:
        query = f"{_TOUCHED} SELECT count(*) FROM touched"  # noqa: S608 - constants
        return int(await connection.fetchval(query, target.space, list(target.conversations), list(target.logs)))


OBSERVATIONS = ObservationData()
