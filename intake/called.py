"""What is the person called whose turns come in? Their own handles and names are masked in what they say."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from cachetools import LRUCache

from gateways.key_store import KeyStore
from intake.identity import bind_space
from models import name as names
from models.database import Database
from privacy.known import Known

_FRESH = 0.8  # seconds between looks for changes: a new name is masked everywhere within one second
_OVERLAP = timedelta(minutes=1)  # a change is seen though its transaction committed that much later

People = frozenset[UUID]


@dataclass(slots=True)
class Called:
    """Reads what a person is called once per change. One per process."""

    database: Database
    keys: KeyStore
    _known: "LRUCache[tuple[UUID, UUID], tuple[People, Known]]" = field(
        default_factory=lambda: LRUCache(maxsize=10_000)
    )
    _changes: int = 0
    _looked: float = float("-inf")
    _since: datetime | None = None
    _seen: set[tuple[UUID, datetime]] = field(default_factory=set)

    async def names(self, space: int, owner: UUID, speaker: UUID) -> Known:
        """What a conversation's owner and its log's are called, and whoever is the same person by confirmed links."""
        if time.monotonic() - self._looked > _FRESH:
            await self._look()
        known = self._known.get((owner, speaker))
        return known[1] if known is not None else await self._read(space, owner, speaker)

    def forget(self, changed: Iterable[UUID]) -> None:
        """Drops what this process knows of these subjects."""
        gone = set(changed)
        self._changes += 1  # what is being read meanwhile may be of before
        for pair in [pair for pair, (people, _) in self._known.items() if not gone.isdisjoint((*pair, *people))]:
            self._known.pop(pair, None)

    async def _look(self) -> None:
        self._looked = time.monotonic()  # whoever comes meanwhile goes by the look before
        since = None if self._since is None else self._since - _OVERLAP
        async with self.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            self._since, touched = await names.touched_since(connection, since)
        changed = {subject for subject, at in touched if (subject, at) not in self._seen}
        self._seen = set(touched)
        if changed:
            self.forget(changed)

    async def _read(self, space: int, owner: UUID, speaker: UUID) -> Known:
        before = self._changes
        async with self.database.pool.acquire() as connection, connection.transaction():
            await bind_space(connection, space)
            people, callings = await names.callings(connection, space, sorted({owner, speaker}))
        known = names.compiled(callings, await self.keys.keys([one.subject for one in callings]))
        if self._changes == before:
            self._known[(owner, speaker)] = (people, known)
        return known
