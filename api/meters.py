"""What the process counts, and what it reads from the database when it is scraped. Labels never hold ids or texts."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from jobs.letters import OBSERVE
from models.backlog import depths
from models.database import Database, driver
from models.governance import governed
from models.model_usage import ModelUsage
from models.quarantine import Quarantined
from models.turn import StoredTurn
from models.work import Work

_PATIENCE = 5.0  # seconds
_FRESH = 2.0  # seconds that a reading serves: whoever scrapes more often costs the database nothing
_SETTLED = timedelta(seconds=2)  # usage rows younger than this may still have neighbours that commit later

_log = structlog.get_logger()


class Meters:
    """Counters that requests move, and gauges that a reading sets; one registry per application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        turns = self._counter("turns", "Turns that came in, by what became of them.", "outcome")
        self._accepted, self._duplicates = turns.labels("accepted"), turns.labels("duplicate")
        self._ignored = self._counter(
            "identity_headers_ignored", "Identity headers without the right to them.", "header"
        )
        self.missed_bells = self._gauge("bells_not_rung", "Wake-ups of this process that Redis did not hear.")
        self.database_up = self._gauge("database_up", "Whether PostgreSQL answered; if not, what follows is of before.")
        self.depth = self._gauge("queue_depth", "Unfinished work.", "queue_class", "state")
        self.age = self._gauge("queue_oldest_seconds", "How long the oldest of it has waited.", "queue_class", "state")
        self.due = self._gauge("logs_due", "Logs whose observation is due and not begun.")
        self.lag = self._gauge("observation_lag_seconds", "How long the first of them has been due.")
        self.quarantined = self._gauge("turns_quarantined", "Turns that are set aside now.")
        self.unmasked = self._gauge("turns_unmasked", "Turns in which a model is still to look for names.")
        self.unsealed = self._gauge("receipts_unsealed", "Receipts that no seal holds yet.")
        self.unsealed_for = self._gauge("receipts_unsealed_oldest_seconds", "How long the first of them has waited.")
        self.expired_for = self._gauge(
            "expired_oldest_seconds", "How long the oldest row that no sweep has deleted is past its term."
        )
        self.erasures = self._gauge("erasures_in_progress", "Erasures that are not completed.")
        self.erasing_for = self._gauge("erasures_oldest_seconds", "How long ago the first of them was accepted.")
        self.calls = self._counter(
            "model_calls", "The deployment's model calls, as its database counts them.", "job", "outcome"
        )
        self.tokens = self._counter("model_tokens", "Their tokens; cached ones are a part of input.", "job", "kind")

    def count_turns(self, accepted: int, duplicates: int) -> None:
        for counter, turns in ((self._accepted, accepted), (self._duplicates, duplicates)):
            if turns:
                counter.inc(turns)

    def count_ignored(self, headers: Iterable[str]) -> None:
        for header in headers:
            self._ignored.labels(header).inc()

    def written(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"afterturn_{name}", says, labels, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(f"afterturn_{name}", says, labels, registry=self.registry)


@dataclass(slots=True)
class Reader:
    """Reads the deployment's state into meters, at most every two seconds, and never fails.

    Model calls count from the first that the store knows, so that neither a restart nor a late first scrape loses any. They
    never fall while the process runs, also when old usage is deleted.
    """

    database: Database
    meters: Meters
    _usage_through: int = 0
    _fresh_until: float = 0.0
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> None:
        async with self._reading:
            if time.monotonic() < self._fresh_until:
                return
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._read_all()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, what the process counts is told
                _log.warning("deployment_not_read", exc_info=error)
                self.meters.database_up.set(0)
            self._fresh_until = time.monotonic() + _FRESH

    async def _read_all(self) -> None:
        async with self.database.begin_everywhere() as tx:
            await self._read_queue(tx)
            await self._read_governance(tx)
            await self._read_usage(tx)
        self.meters.database_up.set(1)

    async def _read_queue(self, tx: AsyncSession) -> None:
        meters = self.meters
        meters.depth.clear()
        meters.age.clear()
        for depth in await depths(await driver(tx)):
            meters.depth.labels(depth.queue_class, depth.state).set(depth.rows)
            meters.age.labels(depth.queue_class, depth.state).set(depth.oldest.total_seconds())
        late = func.coalesce(func.extract("epoch", func.now() - func.min(col(Work.run_at))), 0)
        ripe = (col(Work.kind) == OBSERVE, col(Work.state) == "ready", col(Work.run_at) <= func.now())
        count, lag = (await tx.execute(select(func.count(), late).where(*ripe))).one()
        meters.due.set(count)
        meters.lag.set(lag)
        held = select(func.count()).select_from(Quarantined).where(col(Quarantined.released_at).is_(None))
        meters.quarantined.set((await tx.execute(held)).scalar_one())
        unmasked = select(func.count()).select_from(StoredTurn).where(col(StoredTurn.unmasked))
        meters.unmasked.set((await tx.execute(unmasked)).scalar_one())

    async def _read_governance(self, tx: AsyncSession) -> None:
        meters, stands = self.meters, await governed(await driver(tx))
        meters.unsealed.set(stands.receipts_unsealed)
        meters.unsealed_for.set(stands.unsealed_for.total_seconds())
        meters.expired_for.set(stands.expired_for.total_seconds())
        meters.erasures.set(stands.erasures)
        meters.erasing_for.set(stands.erasing_for.total_seconds())

    async def _read_usage(self, tx: AsyncSession) -> None:
        usage = ModelUsage
        sums = (func.sum(col(part)) for part in (usage.input_tokens, usage.cached_tokens, usage.output_tokens))
        new = (col(usage.id) > self._usage_through, col(usage.created_at) < func.now() - _SETTLED)
        query = select(col(usage.job), col(usage.outcome), func.max(col(usage.id)), func.count(), *sums).where(*new)
        for job, outcome, newest, calls, *spent in await tx.execute(query.group_by(usage.job, usage.outcome)):
            self._usage_through = max(self._usage_through, newest)
            self.meters.calls.labels(job, outcome).inc(calls)
            for kind, tokens in zip(("input", "cached", "output"), spent, strict=True):
                self.meters.tokens.labels(job, kind).inc(tokens)
