"""Which master key wraps, and which ones unwrap? One, but for the while that the store is re-wrapped by a new one.

The store holds a proof by each master key that any of its keys is wrapped by. While it is rotated there are two, and
every process must know both. Which one a process wraps with does not matter until the former one's proof is gone: then
PostgreSQL refuses what would still be wrapped by it, and the process turns to the new one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

import asyncpg

from gateways import master_proof
from privacy import sealing
from privacy.sealing import Unreadable

T = TypeVar("T")

Wrap = Callable[[UUID, bytes], bytes]
"""A key's id and secret, wrapped by the master key that wraps now."""


@dataclass(slots=True)
class Masters:
    """The deployment's master key, and the former one while there is one. One per process."""

    newest: bytes = field(repr=False)
    former: bytes | None = field(repr=False)
    _wraps: bytes = field(repr=False)

    def wrap(self, key_id: UUID, secret: bytes) -> bytes:
        """A key under the master key that wraps now."""
        return sealing.wrap(self._wraps, key_id, secret)

    def unwrap(self, key_id: UUID, wrapped: bytes) -> bytes:
        """The key; Unreadable when it was wrapped by neither master key, or for another id."""
        for master in (self.newest, self.former):
            if master is not None and sealing.is_wrapped_by(master, wrapped):
                return sealing.unwrap(master, key_id, wrapped)
        raise Unreadable("wrapped by another master key")

    async def wrapping(self, pool: asyncpg.Pool, put: Callable[[Wrap], Awaitable[T]]) -> T:
        """What `put` answers, which writes what it wraps; once more where its master key was retired meanwhile."""
        try:
            return await put(self.wrap)
        except asyncpg.ForeignKeyViolationError:
            self._wraps = await master_proof.prove(pool, self.newest, self.former)
            return await put(self.wrap)


async def known(pool: asyncpg.Pool, newest: bytes, former: bytes | None) -> Masters:
    """The master keys of this process; WrongMasterKey when the store has another, or one more."""
    former = None if former == newest else former
    return Masters(newest, former, await master_proof.prove(pool, newest, former))
