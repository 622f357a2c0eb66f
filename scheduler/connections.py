"""Connections for the queue alone, so that no heartbeat ever waits for a job's transaction."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from models.database import Database
from models.patience import pooled

# The planner's numbers about a queue are always old. Every statement here goes by a key, and by the same one each time:
# planning it anew costs as long as running it, and a plan made while the table was empty must not read all of it later.
_BY_KEY = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off"


@asynccontextmanager
async def opened(database: Database, size: int) -> AsyncIterator[asyncpg.Pool]:
    """A pool beside the database's own. It opens its connections when they are needed."""
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with pooled(url, 0, size, database.patience, init=_prepare, reset=_leave) as pool:
        yield pool


async def _prepare(connection: asyncpg.Connection) -> None:
    await connection.execute(_BY_KEY)


async def _leave(_: asyncpg.Connection) -> None:
    """Nothing here changes a session, and asyncpg's own reset would cost a round trip for every statement."""
