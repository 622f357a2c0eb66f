"""How many rows an export asks for at once: as many as a few megabytes hold, whatever their size."""

from typing import Any
from uuid import uuid4

import pytest

from models.dataset import Holds, Target
from models.rows import Rows, Way


class Database:
    """A connection to a table whose largest row is of so many bytes."""

    def __init__(self, largest: int | None) -> None:
        self._largest, self.asked, self.queries = largest, [], []  # type: ignore[var-annotated]  # filled below

    async def fetchval(self, query: str, *_: Any) -> int | None:
        self.queries.append(query)
        return self._largest

    async def cursor(self, query: str, *_: Any) -> "Database":
        self.queries.append(query)
        return self

    async def fetch(self, most: int) -> list[Any]:
        self.asked.append(most)
        return []


async def asked(largest: int | None, **columns: Holds) -> Database:
    database = Database(largest)
    rows = Rows("things", "things", columns, (Way("subject_id", "subjects"),), lambda row, _: row, "id")
    assert [row async for row in rows.export(database, Target(1, subjects=(uuid4(),)), {})] == []
    return database


@pytest.mark.parametrize(("largest", "most"), [(None, 1_000), (0, 1_000), (500, 1_000), (256 * 1024, 16)])
async def test_larger_rows_are_asked_for_by_fewer(largest: int | None, most: int) -> None:
    assert (await asked(largest, sealed=Holds.SEALED)).asked == [most]


async def test_what_is_sealed_makes_a_row_s_size() -> None:
    database = await asked(500, sealed=Holds.SEALED, also=Holds.SEALED, digest=Holds.DIGEST)
    assert "max(coalesce(octet_length(sealed), 0) + coalesce(octet_length(also), 0))" in database.queries[0]
