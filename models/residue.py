"""The residue scan: does anything of the erased remain? By other means than the eraser's.

Two looks. Each data set counts what it has of the target. And every column of the live schema, known to the code or
not, is searched for the target's ids: as uuids and numbers, in arrays, in JSON, in text, in bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from models import schema
from models.columns import utc_now
from models.database import Connection, Database, driver
from models.dataset import Target, see_expired
from models.registry import DATA_SETS
from models.schema import Column

KEPT: Mapping[str, str] = {
    "receipts": "ids of what was done, in a chain that is not to break; nothing leads from an id to a person any more",
    "announcements": "ids of what subscribers were told",
    "erasures": "the ids that were erased, so that the scan can be made again",
}

_ONE_TABLE = 6 * 3600.0  # seconds: all of it is read, however large
_HEX, _UUID = 32, 16  # the shortest text, and bytes, that can hold a subject's id
_SEALED = 1  # the first byte of what is sealed
_NUMBERED = {  # by name: the numbers of which part a column holds
    "log_id": "logs",
    "conversation_id": "conversations",
}
_OWN = {"logs": "logs", "conversations": "conversations"}  # by table: of which part its own `id` is
_SCOPES = ("scope", "dedup")  # texts that name a log by its number


@dataclass(frozen=True, slots=True)
class Scan:
    """What was looked at, and by place what was found; nothing where it is clean."""

    at: datetime
    tables: int
    columns: int
    rows: int
    found: Mapping[str, int]


async def scan(database: Database, target: Target) -> Scan:
    """Looks everywhere, every space included; one transaction a table."""
    async with database.begin_everywhere() as tx:
        live = await schema.columns(await driver(tx))
    rows, looked, found = 0, 0, await _counted(database, target)
    tables = [(name, list(columns)) for name, columns in groupby(live, key=lambda column: column.table)]
    for table, columns in tables:
        tests = [] if table in KEPT else [(column, test) for column in columns for test in _tests(column, target)]
        async with database.begin_everywhere() as tx:
            seen, hits = await _search(await driver(tx), table, [test for _, test in tests])
        rows, looked = rows + seen, looked + len(columns)
        found |= {str(place): hit for (place, _), hit in zip(_named(tests), hits, strict=True) if hit}
    return Scan(utc_now(), len(tables), looked, rows, found)


async def _counted(database: Database, target: Target) -> dict[str, int]:
    """What each data set says that it has."""
    left = {}
    for data_set in DATA_SETS:
        async with database.begin(target.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            left[data_set.name] = await data_set.count(connection, target)
    return {name: rows for name, rows in left.items() if rows}


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition with one parameter, `{}`."""

    condition: str
    parameter: Any


async def _search(connection: Connection, table: str, tests: Sequence[_Test]) -> tuple[int, list[int]]:
    """The rows of a table, and for each test those that it finds, in one pass."""
    await see_expired(connection)
    filters = [f", count(*) FILTER (WHERE {test.condition.format(f'${at}')})" for at, test in enumerate(tests, 1)]
    query = f'SELECT count(*){"".join(filters)} FROM "{table}"'  # noqa: S608 - names from the catalogue, quoted
    seen, *hits = await connection.fetchrow(query, *(test.parameter for test in tests), timeout=_ONE_TABLE)
    return seen, hits


def _named(tests: Sequence[tuple[Column, _Test]]) -> Iterator[tuple[str, _Test]]:
    for column, test in tests:
        yield f"{column.table}.{column.name}", test


def _tests(column: Column, target: Target) -> Iterator[_Test]:
    name, subjects = f'"{column.name}"', list(target.subjects)
    numbers = _part(column, target)
    if numbers and column.type == "bigint":
        yield _Test(f"{name} = ANY ({{}}::bigint[])", numbers)
    if column.name in _SCOPES and column.type != "bytea" and target.logs:
        yield _Test(f"{name} = ANY ({{}}::text[])", [f"log:{log}" for log in target.logs])
    if column.type == "jsonb":
        yield from _in_json(name, target)
    if subjects:
        yield from _of_subjects(name, column.type, subjects)


def _part(column: Column, target: Target) -> list[int]:
    part = _OWN.get(column.table) if column.name == "id" else _NUMBERED.get(column.name)
    return list(getattr(target, part)) if part else []


def _in_json(name: str, target: Target) -> Iterator[_Test]:
    for member, part in _NUMBERED.items():
        numbers = [str(number) for number in getattr(target, part)]
        if numbers:
            path = f"jsonb_path_query({name}, '$.**.{member}', '{{{{}}}}', true)"
            yield _Test(
                f"EXISTS (SELECT FROM {path} AS v (said) WHERE said #>> '{{{{}}}}' = ANY ({{}}::text[]))", numbers
            )


def _of_subjects(name: str, kind: str, subjects: list[Any]) -> Iterator[_Test]:
    written = [f"%{form}%" for subject in subjects for form in (subject.hex, str(subject))]
    match kind:
        case "uuid":
            yield _Test(f"{name} = ANY ({{}}::uuid[])", subjects)
        case "uuid[]":
            yield _Test(f"{name} && {{}}::uuid[]", subjects)
        case "bytea":
            # Sealed bytes begin with their version and show nothing; digests are as long as an id.
            raw = [subject.bytes for subject in subjects]
            yield _Test(f"{name} = ANY ({{}}::bytea[])", raw)
            within = f"EXISTS (SELECT FROM unnest({{}}::bytea[]) AS r (id) WHERE position(r.id IN {name}) > 0)"
            yield _Test(f"octet_length({name}) > {_UUID} AND get_byte({name}, 0) <> {_SEALED} AND {within}", raw)
        case _ if kind not in schema.NO_TEXT:
            yield _Test(f"octet_length({name}::text) >= {_HEX} AND {name}::text LIKE ANY ({{}}::text[])", written)
