"""A snapshot: one read-only view of the database, held for as long as an export takes to read from it.

The one transaction inside which something else than the database is awaited: it locks nothing and writes nothing. It
has a connection of its own, so that no request waits for one meanwhile.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from models.database import Connection, Database

_TO_CONNECT = 10.0  # seconds
_TO_CLOSE = 5.0

_AS_LONG_AS_IT_TAKES = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
# One person's rows are reached by an index and come in its order. By the planner's numbers, which row-level security
# misleads, it would read a whole table and sort what it found on disk.
_BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0"


@asynccontextmanager
async def snapshot(database: Database, space: int) -> AsyncIterator[Connection]:
    """What one space holds at this instant, as long as the block lasts."""
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with _connected(url) as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(f"{_AS_LONG_AS_IT_TAKES}; {_BY_INDEX}")
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(space))
        yield connection


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, timeout=_TO_CONNECT)
    try:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        yield connection
    finally:
        try:
            await connection.close(timeout=_TO_CLOSE)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()
