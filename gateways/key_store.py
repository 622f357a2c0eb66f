"""The key store: every person's key, wrapped, in a database of its own, so that no dump of the data holds one.

A key that was destroyed is gone from here, and from each process's memory within `_FRESH` seconds; until then what
it could open is behind the fence of the data database already.
"""

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from gateways import masters
from gateways.masters import Masters, Wrap
from models.patience import USUAL, Patience, pooled
from privacy import sealing
from privacy.sealing import SealingKey

_KEPT = 50_000  # keys in memory at most
_FRESH = 300.0  # seconds that one is trusted without asking again
_NONE: tuple[float, None] = (float("-inf"), None)


class KeyGone(Exception):
    """There is no such key: it was destroyed by an erasure, or never made."""


@dataclass(slots=True)
class KeyStore:
    """Makes, opens and remembers keys. One per process."""

    pool: asyncpg.Pool
    masters: Masters
    _open: dict[UUID, tuple[float, SealingKey]] = field(default_factory=dict, repr=False)  # as fetched, oldest first

    async def make(self, key_id: UUID, purpose: str) -> SealingKey:
        """A new key under that id. Purpose: `subject` or `space`."""
        secret = os.urandom(sealing.KEY_BYTES)

        async def put(wrap: Wrap) -> None:
            await self.pool.execute(
                "INSERT INTO wrapped_keys (id, purpose, wrapped) VALUES ($1, $2, $3)",
                *(key_id, purpose, wrap(key_id, secret)),
            )

        await self.masters.wrapping(self.pool, put)
        return self._remember(SealingKey(key_id, secret))

    async def key(self, key_id: UUID) -> SealingKey:
        """The key of a subject or space; KeyGone when it was destroyed."""
        return self._recall(key_id) or (await self.keys([key_id]))[key_id]

    async def keys(self, key_ids: Sequence[UUID]) -> dict[UUID, SealingKey]:
        """Many at once; KeyGone when any is missing."""
        found = {key_id: key for key_id in key_ids if (key := self._recall(key_id))}
        missing = [key_id for key_id in set(key_ids) if key_id not in found]
        if missing:
            found |= await self._fetch(missing)
        if len(found) < len(set(key_ids)):
            raise KeyGone
        return found

    async def key_of_deployment(self, key_id: UUID, purpose: str) -> SealingKey:
        """A key that there is one of: made by the first who asks, and of several at once by one."""
        known = self._recall(key_id)
        if known is not None:
            return known

        async def put(wrap: Wrap) -> None:
            await self.pool.execute(
                "INSERT INTO wrapped_keys (id, purpose, wrapped) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                *(key_id, purpose, wrap(key_id, os.urandom(sealing.KEY_BYTES))),
            )

        await self.masters.wrapping(self.pool, put)
        return (await self._fetch([key_id]))[key_id]

    async def destroy(self, key_ids: Sequence[UUID]) -> None:
        """Ends keys for good: whatever they sealed can be read nowhere any more, in no backup of the data either."""
        await self.pool.execute("DELETE FROM wrapped_keys WHERE id = ANY ($1::uuid[])", list(key_ids))
        self.forget_all(set(key_ids))

    def forget(self, key_id: UUID) -> None:
        """Drops a key from this process's memory."""
        self._open.pop(key_id, None)

    def forget_all(self, key_ids: set[UUID]) -> None:
        """Drops keys from this process's memory."""
        for key_id in key_ids:
            self.forget(key_id)

    async def _fetch(self, key_ids: list[UUID]) -> dict[UUID, SealingKey]:
        rows = await self.pool.fetch("SELECT id, wrapped FROM wrapped_keys WHERE id = ANY($1)", key_ids)
        opened = (SealingKey(row["id"], self.masters.unwrap(row["id"], row["wrapped"])) for row in rows)
        return {key.id: self._remember(key) for key in opened}

    def _recall(self, key_id: UUID) -> SealingKey | None:
        fetched_at, key = self._open.get(key_id, _NONE)
        return key if time.monotonic() - fetched_at < _FRESH else None

    def _remember(self, key: SealingKey) -> SealingKey:
        now = time.monotonic()
        self._open.pop(key.id, None)
        self._open[key.id] = (now, key)
        while len(self._open) > _KEPT or now - next(iter(self._open.values()))[0] >= _FRESH:
            self._open.pop(next(iter(self._open)))
        return key


@asynccontextmanager
async def connect(
    url: str, master: bytes, former: bytes | None = None, *, size: int = 4, patience: Patience = USUAL
) -> AsyncIterator[KeyStore]:
    """The key store behind `url`; its connections close with the block.

    `former` is the master key before, while the store is rotated. WrongMasterKey: the store knows another.
    """
    async with pooled(url, 1, size, patience) as pool:
        yield KeyStore(pool, await masters.known(pool, master, former))


async def holds_data(url: str) -> bool:
    """Whether the database behind `url` is the data database: then it must not be the key store."""
    connection = await asyncpg.connect(url, timeout=10, command_timeout=10)
    try:
        return bool(await connection.fetchval("SELECT to_regclass('turns') IS NOT NULL"))
    finally:
        await connection.close()
