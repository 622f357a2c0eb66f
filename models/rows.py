"""Data sets that are the rows of one table: counted, exported, expired and erased by what their columns say.

A batch is found by way of an index, in its order, and deleted by where its rows lie, so that a batch costs the same
whatever the table's size. The planner's numbers would at times have it read the whole table for a thousand rows.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.database import Connection
from models.dataset import Holds, Keys, Place, Row, Tables, Target

_AT_ONCE = 2 * 1024 * 1024  # sealed bytes that an export asks for at most, and as many are on their way
_FEWEST, _MOST = 8, 1_000  # rows that it asks for
_ALL_ROWS = 3600.0  # seconds that counting may take
_TYPES = {"subjects": "uuid", "logs": "bigint", "conversations": "bigint"}


class Way(NamedTuple):
    """How a target's rows are found: by a column that holds one part of it, in the order of that column's index."""

    column: str
    part: str
    order: str | None = None


def parts(target: Target, *names: str) -> list[list[Any]]:
    """Parts of a target, as parameters."""
    return [list(getattr(target, name)) for name in names]


@dataclass(frozen=True, slots=True)
class Rows:
    """One table. `show` opens a row for its owner; `age` is the column by whose instant it is past its term.

    `spared` is a further condition of the sweep: what is held or alive stays, and must not be come by again and again.
    `needs` are the columns that `show` looks at, where there are many rows.
    """

    name: str
    table: str
    columns: Mapping[str, Holds]
    ways: tuple[Way, ...]
    show: Callable[[Any, Keys], Row]
    order: str
    age: str | None = None
    spared: str = ""
    needs: str = "*"

    @property
    def tables(self) -> Tables:
        return {self.table: self.columns}

    async def count(self, connection: Connection, target: Target) -> int:
        """Rows that the target has."""
        query = f"SELECT count(*) FROM {self.table} WHERE {self._mine()}"  # noqa: S608 - names from this code alone
        return int(await connection.fetchval(query, target.space, *self._parts(target), timeout=_ALL_ROWS))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        """Deletes up to `most` of them, by the first way that finds any."""
        for way in self.ways:
            ids = getattr(target, way.part)
            if ids and (gone := number(await connection.execute(self._delete(way), target.space, list(ids), most))):
                return gone
        return 0

    async def by_log(self, connection: Connection, target: Target, place: Place, most: int) -> tuple[int, Place | None]:
        """As `erase`, log by log, past those that are done."""
        nth = place[0]
        if nth >= len(target.logs):
            return 0, None
        gone = await self.erase(connection, Target(target.space, logs=target.logs[nth : nth + 1]), most)
        return gone, (nth, 0) if gone == most else (nth + 1, 0)

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        """Each row, opened: way by way, so that an index gives them in order and nothing is sorted."""
        for place, way in enumerate(self.ways):
            if not getattr(target, way.part):
                continue
            mine = f"""
                FROM {self.table} WHERE space_id = $1 AND {self._by(place)}
                    {"".join(f"AND ({self._by(earlier)}) IS NOT TRUE " for earlier in range(place))}
            """
            arguments = (target.space, *self._parts(target)[: place + 1])
            most = _FEWEST + _AT_ONCE // (
                await connection.fetchval(f"SELECT {self._largest()} {mine}", *arguments) or 1
            )
            rows = await connection.cursor(f"SELECT {self.needs} {mine} ORDER BY {self.order}", *arguments)
            async for batch in _batches(rows, min(most, _MOST)):
                for row in batch:
                    yield self.show(row, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        """Deletes up to `most` rows whose age is at or before the horizon of this data set."""
        if self.age is None:
            return 0
        past = f"""
            DELETE FROM {self.table} WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {self.table} t WHERE space_id = $1 AND {self.age} <= (SELECT horizon($1, $2)) {self.spared}
                LIMIT $3))
        """  # noqa: S608 - as above
        return number(await connection.execute(past, space, self.name, most))

    def _largest(self) -> str:
        """The bytes of the largest row, by what is sealed in it: nothing else in a row is large."""
        sealed = [column for column, holds in self.columns.items() if holds is Holds.SEALED]
        return f"max({' + '.join(f'coalesce(octet_length({column}), 0)' for column in sealed) or 0})"

    def _mine(self) -> str:
        return f"space_id = $1 AND ({' OR '.join(map(self._by, range(len(self.ways))))})"

    def _by(self, place: int) -> str:
        """By one way; its ids are the parameter of that place after the space."""
        way = self.ways[place]
        return f"{way.column} = ANY (${place + 2}::{_TYPES[way.part]}[])"

    def _parts(self, target: Target) -> list[list[Any]]:
        return parts(target, *(way.part for way in self.ways))

    def _delete(self, way: Way) -> str:
        in_order = f"ORDER BY {way.order}" if way.order else ""
        return f"""
            DELETE FROM {self.table} WHERE space_id = $1 AND ctid = ANY (ARRAY(
                SELECT t.place FROM unnest($2::{_TYPES[way.part]}[]) AS w (id) CROSS JOIN LATERAL (
                    SELECT ctid AS place FROM {self.table} WHERE space_id + 0 = $1 AND {way.column} = w.id
                    {in_order} LIMIT $3) t
                LIMIT $3))
        """  # noqa: S608 - as above


async def _batches(cursor: Any, most: int) -> AsyncIterator[list[Any]]:
    """A cursor's rows. PostgreSQL gathers the next ones while these are opened."""
    coming = asyncio.create_task(cursor.fetch(most))
    try:
        while rows := await coming:
            coming = asyncio.create_task(cursor.fetch(most))
            await asyncio.sleep(0)  # the question goes out now
            yield rows
    finally:
        coming.cancel()
        await asyncio.wait([coming])


def number(tag: str) -> int:
    """How many rows a statement's tag tells of."""
    return int(tag.rpartition(" ")[2])


def instant(moment: Any) -> str | None:
    """An instant as JSON has it."""
    return None if moment is None else moment.isoformat()
