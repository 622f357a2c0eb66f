"""The reconciler: what PostgreSQL says is due and nobody works on. Safe to run in as many processes as one likes."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from asyncpg import Connection, Pool

from jobs.bell import Bell
from jobs.job import Registry
from models import backlog, release
from models.database import Database
from models.work import Added
from scheduler import connections, outage
from scheduler.outage import Outage

Hook = Callable[[], Awaitable[Sequence[Added]]]
"""Adds work that something else shows to be due; what it answers is rung."""

_AT_ONCE = 200  # bells in one sweep: a bell wakes a worker, and a worker that is awake looks for itself
_PRUNED = 1_000  # rows in one sweep
_STRANGERS_EVERY = 60.0  # seconds

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often it looks, how long finished work stays listed, and how long workers' claims last."""

    every: timedelta = timedelta(seconds=2)
    keep: timedelta = timedelta(days=30)
    claim: timedelta = timedelta(seconds=15)


async def run_scheduler(
    database: Database,
    bell: Bell,
    jobs: Registry[Any],
    stop: asyncio.Event,
    hooks: Sequence[Hook] = (),
    rounds: Rounds | None = None,
) -> None:
    """Sweeps until `stop` is set. Neither store's absence ends it, nor does a hook that fails."""
    rounds = rounds or Rounds()
    async with connections.opened(database, 2) as pool:
        sweeper = Reconciler(pool, bell, jobs, hooks, rounds)
        while not stop.is_set():
            await sweeper.sweep()
            await _pause(stop, rounds.every.total_seconds() * random.uniform(0.75, 1.25))  # noqa: S311 - no secret


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


@dataclass(slots=True)
class Reconciler:
    """One sweep after another. What one step cannot do is left to the next sweep; the other steps go on."""

    pool: Pool
    bell: Bell
    jobs: Registry[Any]
    hooks: Sequence[Hook]
    rounds: Rounds
    _away: Outage = field(default_factory=lambda: Outage("postgresql"))
    _trusts_claims_from: float = 0.0
    _strangers_at: float = 0.0

    async def sweep(self) -> None:
        """Takes back, rings again, asks the hooks, prunes."""
        try:
            async with self.pool.acquire() as connection:
                await self._recover(connection)
                await self._ring(connection)
                await self._watch_for_strangers(connection)
                await backlog.prune(connection, self.rounds.keep, _PRUNED)
        except outage.DATABASE as error:
            self._away.began(error)
            # Workers could not renew meanwhile either: those that live get the time to, before they count as dead.
            self._trusts_claims_from = time.monotonic() + self.rounds.claim.total_seconds() / 2
        else:
            self._away.ended()
            await self._ask_hooks()

    async def _recover(self, connection: Connection) -> None:
        if time.monotonic() < self._trusts_claims_from:
            return
        limits = {kind: job.crashes for kind, job in self.jobs.items() if job.crashes is not None}
        recovered = await release.recover_expired(connection, limits)
        if recovered:
            _log.warning("claims_recovered", work_ids=[row.id for row in recovered])
        await self.bell.ring(recovered)

    async def _ring(self, connection: Connection) -> None:
        await self.bell.ring(await backlog.unrung(connection, list(self.jobs), _AT_ONCE))

    async def _watch_for_strangers(self, connection: Connection) -> None:
        if time.monotonic() < self._strangers_at:
            return
        self._strangers_at = time.monotonic() + _STRANGERS_EVERY
        for kind in await backlog.strangers(connection, list(self.jobs)):
            _log.error("kind_not_known", kind=kind)

    async def _ask_hooks(self) -> None:
        for hook in self.hooks:
            try:
                await self.bell.ring(await hook())
            except Exception as error:  # noqa: BLE001 - one hook's failure must not keep the sweep from the rest
                _log.error("hook_failed", hook=getattr(hook, "__qualname__", "hook"), exc_info=error)
