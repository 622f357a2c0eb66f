"""The bell, with its misses counted, and asked whether anybody hears it."""

import asyncio
from collections.abc import Iterable

from redis.exceptions import RedisError

from jobs.bell import Bell, connect
from models.work import Added

_PATIENCE = 0.05  # seconds that a ring may take
_PATIENCE_OF_PROBES = 0.2


class CountingBell(Bell):
    """`missed` counts rings that Redis did not hear; the sweep starts that work."""

    missed = 0

    async def ring(self, added: Iterable[Added]) -> bool:
        heard = await super().ring(added)
        self.missed += not heard
        return heard

    async def is_heard(self) -> bool:
        """Whether Redis answers."""
        try:
            async with asyncio.timeout(_PATIENCE_OF_PROBES):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return False
        return True


def listening(url: str) -> CountingBell:
    """A bell on the Redis at `url`, which need not be up."""
    return CountingBell(connect(url, connections=4, timeout=_PATIENCE))
