"""Observations as a data set: what was condensed from a person's turns, in every generation.

Lines about one conversation may stand in a log that stays: a person's conversation in somebody else's log, or a single
conversation that is erased. They are found by their evidence, and by way of `sources` in what was rewritten from them.
"""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from models.content import open_line
from models.database import Connection
from models.dataset import LONG_AGO, Holds, Keys, Place, Row, Spot, Tables, Target
from models.hold import UNHELD
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


# How lines are past their term: each way walks along an index, from a row on, and looks at so many at most.
_BY_AGE = f"""
SELECT id, true AS past, born_at AS at, id AS nth FROM observations o
WHERE space_id = $1 AND (born_at, id) > ($2, $3) AND born_at <= (SELECT horizon($1, 'observations')) AND {UNHELD}
ORDER BY born_at, id LIMIT $4
"""  # noqa: S608 - constants

_WITH_GENERATION = f"""
SELECT o.id, true AS past, g.created_at AS at, 0 AS nth
FROM generations g JOIN logs l ON l.id = g.log_id AND l.generation <> g.number
CROSS JOIN LATERAL (
    SELECT id FROM observations o
    WHERE o.space_id + 0 = $1 AND o.log_id = g.log_id AND o.generation = g.number AND {UNHELD} OFFSET 0) o
WHERE g.space_id = $1 AND g.created_at >= $2 AND $3 >= 0 AND g.created_at <= (SELECT horizon($1, 'generations'))
ORDER BY g.created_at LIMIT $4
"""  # noqa: S608 - constants

_WITH_SOURCE = f"""
SELECT o.id, NOT EXISTS (
        SELECT FROM turns t WHERE t.id = ANY (o.evidence) AND t.created_at > (SELECT horizon($1, 'turns'))) AS past,
    born_at AS at, id AS nth
FROM observations o
WHERE space_id = $1 AND (born_at, id) > ($2, $3) AND {UNHELD}
    AND (SELECT with_source FROM retention WHERE space_id = $1 AND data_set = 'observations')
ORDER BY born_at, id LIMIT $4
"""  # noqa: S608 - constants

_WAYS = (_BY_AGE, _WITH_GENERATION, _WITH_SOURCE)
_LOOK = """
SELECT array_agg(id) FILTER (WHERE past) AS past, count(*) AS rows, max(at) AS at, (array_agg(nth))[count(*)] AS nth
FROM ({}) looked
"""
_EXPIRED = "DELETE FROM observations WHERE space_id = $1 AND id = ANY ($2::bigint[])"


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
        spot: Spot | None = None
        while True:
            gone, spot = await self.sweep(connection, space, spot, most)
            if gone or spot is None:
                return gone

    async def sweep(self, connection: Connection, space: int, spot: Spot | None, most: int) -> tuple[int, Spot | None]:
        way, born, last = spot or (0, LONG_AGO, 0)
        looked = await connection.fetchrow(_LOOK.format(_WAYS[way]), space, born, last, most)
        gone = number(await connection.execute(_EXPIRED, space, looked["past"])) if looked["past"] else 0
        if looked["rows"] == most:
            return gone, (way, looked["at"], looked["nth"])
        return gone, (way + 1, LONG_AGO, 0) if way + 1 < len(_WAYS) else None

    async def _touched(self, connection: Connection, target: Target) -> int:
        query = f"{_TOUCHED} SELECT count(*) FROM touched"  # noqa: S608 - constants
        return int(await connection.fetchval(query, target.space, list(target.conversations), list(target.logs)))


OBSERVATIONS = ObservationData()
