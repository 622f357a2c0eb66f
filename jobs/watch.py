"""Are these data the ones that the ledger knows, and who was erased meanwhile? Looked at once a second, by each process."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from gateways import ledger
from gateways.key_store import KeyStore
from gateways.ledger import Entry
from models.database import Database
from models.patience import AWAY

_FRESH = 1.0  # seconds that a look serves

_log = structlog.get_logger()


@dataclass(slots=True)
class Watch:
    """`forget` is told of subjects that another process has erased: what this one remembers of them is of before."""

    database: Database
    keys: KeyStore
    forget: Callable[[set[UUID]], None]
    _behind: bool = False
    _looked: float = float("-inf")
    _seen: set[UUID] = field(default_factory=set)

    async def trusts(self) -> bool:
        """False while the ledger is ahead of the data: somebody has restored a backup from before an erasure."""
        now = time.monotonic()
        if now - self._looked > _FRESH:
            self._looked = now  # whoever comes meanwhile goes by the look before
            await self._look()
        return not self._behind

    async def _look(self) -> None:
        try:
            entries = await ledger.recent(self.keys)
            behind = await ledger.is_ahead(self.database, entries)
        except AWAY:
            return  # what was seen last holds; the work itself will find out what is away
        if behind and not self._behind:
            _log.error("ledger_ahead_of_data")
        self._behind = behind
        self._forget(entries)

    def _forget(self, entries: list[Entry]) -> None:
        gone = {subject for entry in entries if entry.id not in self._seen for subject in entry.subjects()}
        self._seen = {entry.id for entry in entries}
        if gone:
            self.forget(gone)
