"""Closing: runs that wrote nothing are completed together, as many in one commit as are waiting."""

import asyncio
from collections.abc import Sequence

from asyncpg import Pool

from models import work
from models.work import Claim
from scheduler import outage
from scheduler.outage import Outage

_PAUSE = 0.5  # seconds between looks at a database that is away


class Closer:
    """While one commit is on its way, those that come meanwhile wait for the next, together."""

    def __init__(self, pool: Pool, away: Outage) -> None:
        self._pool, self._away = pool, away
        self._waiting: list[tuple[Sequence[Claim], asyncio.Future[bool]]] = []
        self._committing: asyncio.Task[None] | None = None

    async def complete(self, claims: Sequence[Claim]) -> bool:
        """True when all of them were still held, and are done now. Waits for a database that is away."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((claims, answer))
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_waiting())
        return await answer

    async def _commit_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            held = await self._commit([claim for claims, _ in batch for claim in claims])
            for claims, answer in batch:
                if not answer.done():  # its run may have been cancelled meanwhile
                    answer.set_result(all(claim.id in held for claim in claims))

    async def _commit(self, claims: Sequence[Claim]) -> set[int]:
        while True:
            try:
                async with self._pool.acquire() as connection:
                    held = await work.complete_held(connection, claims)
            except outage.DATABASE as error:
                self._away.began(error)
                await asyncio.sleep(_PAUSE)
            else:
                self._away.ended()
                return held
