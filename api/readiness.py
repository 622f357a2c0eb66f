"""Does what the process needs answer? Asked at most once a second, however often probes come."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog
from asyncpg import Pool

from gateways import ledger
from jobs.resources import Resources
from migrations.run import is_current

_PATIENCE = 2.0  # seconds that one answer may take
_FRESH = 1.0  # seconds that a reading serves
_SCHEMA_FRESH = 60.0  # a schema only ever moves forward, and asking for it costs more

_log = structlog.get_logger()

Check = Literal["ok", "down"]


@dataclass(slots=True)
class Readiness:
    """`check` names the database, the key store, the schema, the erasures, Redis and a models layer, and whether each is as
    it should be."""

    resources: Resources
    _last: dict[str, Check] = field(default_factory=dict)
    _fresh_until: float = 0.0
    _schema_until: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check(self) -> dict[str, Check]:
        async with self._asking:
            if time.monotonic() >= self._fresh_until:
                self._last = await self._ask()
                self._fresh_until = time.monotonic() + _FRESH
            return dict(self._last)

    async def _ask(self) -> dict[str, Check]:
        questions: dict[str, Callable[[], Awaitable[bool]]] = {
            "database": lambda: _takes_writes(self.resources.database.pool),
            "key_store": lambda: _takes_writes(self.resources.keys.pool),
            "schema": self._schema_is_current,
            "erasures": self._holds_every_erasure,
            "redis": self.resources.bell.is_heard,
        }
        if self.resources.analyzer is not None:
            questions["models_layer"] = self.resources.analyzer.works
        answers = await asyncio.gather(*(_within_patience(question) for question in questions.values()))
        return {name: "ok" if answer else "down" for name, answer in zip(questions, answers, strict=True)}

    async def _schema_is_current(self) -> bool:
        if time.monotonic() < self._schema_until:
            return True
        current = await is_current(self.resources.settings.stores.database_url.get_secret_value())
        if current:
            self._schema_until = time.monotonic() + _SCHEMA_FRESH
        return current

    async def _holds_every_erasure(self) -> bool:
        # Every request would be refused until the ledger is replayed: a balancer must not send any.
        entries = await ledger.recent(self.resources.keys)
        return not await ledger.is_ahead(self.resources.database, entries)


async def _takes_writes(pool: Pool) -> bool:
    """Whether it lets itself be written to, and has room for a few blocks more: a table would have to grow for that."""
    async with pool.acquire() as connection, connection.transaction():
        if await connection.fetchval("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool"):
            return False
        await connection.execute("SET LOCAL work_mem = '64kB'")  # what needs more goes into a file beside the data
        return bool(await connection.fetchval("SELECT count(*) FROM generate_series(1, 10000)"))


async def _within_patience(question: Callable[[], Awaitable[bool]]) -> bool:
    asked = asyncio.ensure_future(question())
    # Not by a time limit inside the task: a question that is cancelled waits for its own connection to be put away.
    await asyncio.wait({asked}, timeout=_PATIENCE)
    if not asked.done():
        asked.cancel()
        _log.warning("store_did_not_answer", error="TimeoutError")
        return False
    if (error := asked.exception()) is not None:
        _log.warning("store_did_not_answer", exc_info=error)
        return False
    return asked.result()
