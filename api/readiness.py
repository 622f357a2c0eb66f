"""Does what the process needs answer? Asked at most once a second, however often probes come."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog
from asyncpg import Pool

from jobs.resources import Resources
from migrations.run import is_current

_PATIENCE = 2.0  # seconds that one answer may take
_FRESH = 1.0  # seconds that a reading serves
_SCHEMA_FRESH = 60.0  # a schema only ever moves forward, and asking for it costs more

_log = structlog.get_logger()

Check = Literal["ok", "down"]


@dataclass(slots=True)
class Readiness:
    """`check` names the database, the key store, the schema and Redis, and whether each is as it should be."""

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
            "database": lambda: _answers(self.resources.database.pool),
            "key_store": lambda: _answers(self.resources.keys.pool),
            "schema": self._schema_is_current,
            "redis": self.resources.bell.is_heard,
        }
        answers = await asyncio.gather(*(_within_patience(question) for question in questions.values()))
        return {name: "ok" if answer else "down" for name, answer in zip(questions, answers, strict=True)}

    async def _schema_is_current(self) -> bool:
        if time.monotonic() < self._schema_until:
            return True
        current = await is_current(self.resources.settings.stores.database_url.get_secret_value())
        if current:
            self._schema_until = time.monotonic() + _SCHEMA_FRESH
        return current


async def _answers(pool: Pool) -> bool:
    return bool(await pool.fetchval("SELECT true"))


async def _within_patience(question: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await question()
    except Exception as error:  # noqa: BLE001 - whatever keeps it from answering, the answer is no
        _log.warning("store_did_not_answer", exc_info=error)
        return False
