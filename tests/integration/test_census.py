"""Every table of the live schema belongs to a data set, or says why it holds nothing personal; every text is described."""

from typing import TYPE_CHECKING

import pytest

from models import registry, schema
from models.database import driver

if TYPE_CHECKING:
    from jobs.resources import Resources
    from models.database import Connection


async def problems(connection: "Connection") -> list[str]:
    """What the registry does not account for."""
    described, wrong = registry.claimed(), set()
    live = await schema.columns(connection)
    for column in live:
        if column.table in registry.NOTHING_PERSONAL:
            continue
        if column.table not in described:
            wrong.add(f"{column.table} belongs to no data set")
        elif column.could_hold_text and column.name not in described[column.table]:
            wrong.add(f"{column.table}.{column.name} could hold text and is not described")
    there = {(column.table, column.name) for column in live}
    wrong |= {
        f"{table}.{name} is described and is not there"
        for table, names in described.items()
        for name in names
        if (table, name) not in there
    }
    wrong |= {f"{table} is left out and claimed" for table in described if table in registry.NOTHING_PERSONAL}
    wrong |= {f"{table} is left out and is not there" for table in registry.NOTHING_PERSONAL if not _has(live, table)}
    return sorted(wrong)


def _has(live: list[schema.Column], table: str) -> bool:
    return any(column.table == table for column in live)


async def test_every_table_and_every_text_of_the_live_schema_is_accounted_for(resources: "Resources") -> None:
    async with resources.database.begin_everywhere() as tx:
        assert await problems(await driver(tx)) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE diaries (id bigint, entry text)", "diaries belongs to no data set"),
        ("CREATE TABLE visits (id bigint)", "visits belongs to no data set"),
        ("ALTER TABLE turns ADD COLUMN gist text", "turns.gist could hold text and is not described"),
        ("ALTER TABLE turns ADD COLUMN gist bytea", "turns.gist could hold text and is not described"),
        ("ALTER TABLE logs ADD COLUMN notes jsonb", "logs.notes could hold text and is not described"),
        ("ALTER TABLE logs ADD COLUMN tags varchar(20)[]", "logs.tags could hold text and is not described"),
        ("ALTER TABLE turns DROP COLUMN task_digest", "turns.task_digest is described and is not there"),
    ],
)
async def test_what_nobody_registered_is_named(resources: "Resources", statement: str, said: str) -> None:
    connection = await resources.database.pool.acquire()
    unwanted = connection.transaction()
    await unwanted.start()
    try:
        await connection.execute(statement)
        assert await problems(connection) == [said]
    finally:
        await unwanted.rollback()
        await resources.database.pool.release(connection)


def test_every_data_set_has_a_name_of_its_own() -> None:
    names = [data_set.name for data_set in registry.DATA_SETS]
    assert len(names) == len(set(names))
    assert all(registry.named(name).name == name for name in names)
