"""The door to PostgreSQL: a transaction is a block that you can see.

Two ways in, on purpose. `begin` gives an ORM session for everything that is not hot. `pool` gives bare asyncpg
connections to the ingest batcher and the queue, where the ORM would cost fifteen times the CPU of the statement.
"""

import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import asyncpg
from sqlalchemy import event, exc, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from models.patience import USUAL, Patience, pooled


class Connection(Protocol):
    """What the queries written for asyncpg ask of a connection; a pool's and a session's both have it."""

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str: ...  # noqa: ASYNC109 - asyncpg's

    async def executemany(self, query: str, arguments: Iterable[Sequence[Any]]) -> None: ...

    async def fetch(self, query: str, *arguments: Any, timeout: float | None = None) -> list[Any]: ...  # noqa: ASYNC109 - asyncpg's

    async def fetchrow(self, query: str, *arguments: Any, timeout: float | None = None) -> Any: ...  # noqa: ASYNC109 - asyncpg's

    async def fetchval(self, query: str, *arguments: Any, timeout: float | None = None) -> Any: ...  # noqa: ASYNC109 - asyncpg's

    def transaction(self) -> Any: ...

    def cursor(self, query: str, *arguments: Any, prefetch: int | None = None) -> Any: ...


_RESTED = 1.0  # seconds after which a connection may have been cut off without anybody noticing

_BIND_SPACE = text("SELECT set_config('afterturn.space', :space, true)")


@dataclass(frozen=True, slots=True)
class Database:
    """One PostgreSQL database; both pools point at it. `patience` says how long each waits for it."""

    engine: AsyncEngine
    pool: asyncpg.Pool
    patience: Patience = USUAL

    @asynccontextmanager
    async def begin_everywhere(self) -> AsyncIterator[AsyncSession]:
        """A transaction that sees every space: for the scheduler and for counts over all, never for a request."""
        async with AsyncSession(self.engine, expire_on_commit=False) as session, session.begin():
            await _bind(session, "every")
            yield session

    @asynccontextmanager
    async def begin(self, space: int) -> AsyncIterator[AsyncSession]:
        """A transaction bound to one space: row-level security hides every other space's rows.

        Commits at the end of the block, rolls back on an exception.
        """
        async with AsyncSession(self.engine, expire_on_commit=False) as session, session.begin():
            await _bind(session, str(space))
            yield session


async def _bind(session: AsyncSession, space: str) -> None:
    try:
        await session.execute(_BIND_SPACE, {"space": space})
    except exc.TimeoutError:  # the pool's own, which is no error of a database to anybody who tells those apart
        raise TimeoutError("no connection came free") from None


@asynccontextmanager
async def connect(url: str, *, size: int = 10, patience: Patience = USUAL) -> AsyncIterator[Database]:
    """Both pools for `url` (postgresql://…), at most `size` connections each.

    `patience` is for requests and jobs unless it is given; what takes its time, such as an export over everything,
    opens a database of its own with `UNHURRIED`. What takes longer ends in TimeoutError.
    """
    engine = create_async_engine(
        sqlalchemy_url(url),
        pool_size=size,
        max_overflow=0,
        pool_timeout=patience.for_connection,
        connect_args={"timeout": patience.to_connect, "command_timeout": patience.for_statement},
    )
    _ask_the_rested(engine)
    try:
        # Whatever we set is local to a transaction, so there is nothing to reset: that would be a round trip a use.
        async with pooled(url, 1, size, patience, init=_teach_json, reset=_leave) as pool:
            yield Database(engine, pool, patience)
    finally:
        await engine.dispose()


def _ask_the_rested(engine: AsyncEngine) -> None:
    """A connection that rested is asked whether it still stands, before it is used; one in use knows by its use.

    SQLAlchemy's own `pool_pre_ping` asks every time: a round trip for each transaction.
    """

    def rests(_: Any, record: Any) -> None:
        record.info["rests_since"] = time.monotonic()

    def is_taken(connection: Any, record: Any, _: Any) -> None:
        if time.monotonic() - record.info.get("rests_since", 0.0) < _RESTED:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise exc.DisconnectionError from None  # the pool takes another one, or makes it

    event.listen(engine.sync_engine, "checkin", rests)
    event.listen(engine.sync_engine, "checkout", is_taken)


async def driver(session: AsyncSession) -> Connection:
    """The asyncpg connection under a session's open transaction, for the queries that are written for asyncpg."""
    fairy = await (await session.connection()).get_raw_connection()
    connection: Connection = fairy.driver_connection  # type: ignore[assignment]  # SQLAlchemy types it as Any or None
    return connection


def sqlalchemy_url(url: str) -> str:
    """A postgresql:// URL as SQLAlchemy's asyncpg dialect takes it."""
    return make_url(url).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)


async def _leave(connection: Any) -> None:
    """Leaves a connection as it is."""


async def _teach_json(connection: Any) -> None:
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
