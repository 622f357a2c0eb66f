"""Ringing the bell: telling workers, by way of Redis, which rows to look at. Losing a bell costs time, never work."""

import asyncio
import time
from collections.abc import Iterable

import structlog
from arq.connections import ArqRedis
from arq.constants import job_key_prefix
from redis.asyncio.connection import BlockingConnectionPool
from redis.exceptions import RedisError

from jobs import wire
from models.work import Added

_PATIENCE = 0.05  # seconds that a ring may cost the request that it follows
_ENOUGH = 64  # bells of one class in one ring: a worker that is awake looks for the rest itself
_PATIENCE_OF_PROBES = 0.2  # seconds
_SILENCE = 1.0  # seconds without another try after a failure

_log = structlog.get_logger()


class Bell:
    """Rings without ever failing its caller: a Redis that is down or slow is noted, and left alone for a second.

    `missed` counts the rings that were not heard; the scheduler's sweep makes up for them.
    """

    def __init__(self, redis: ArqRedis) -> None:
        self._redis = redis
        self._silent_until = 0.0
        self._out = False
        self.missed = 0

    @classmethod
    def connect(cls, url: str) -> "Bell":
        """A bell on the Redis at `url`, which need not be up."""
        return cls(connect(url, connections=4, timeout=_PATIENCE))

    async def close(self) -> None:
        await self._redis.aclose(close_connection_pool=True)

    async def ring(self, added: Iterable[Added]) -> bool:
        """Rings for what is due of it, in one round trip; call it after the commit. False when it was not heard."""
        bells = [row for row in added if row.due]
        if not bells:
            return True
        if time.monotonic() < self._silent_until:
            self.missed += 1
            return False
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._send(bells)
        except (RedisError, OSError, TimeoutError) as error:
            self._fall_silent(error)
            return False
        self._out = False
        return True

    async def is_heard(self) -> bool:
        """Whether Redis answers."""
        try:
            async with asyncio.timeout(_PATIENCE_OF_PROBES):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return False
        return True

    async def _send(self, bells: list[Added]) -> None:
        now = int(time.time() * 1000)
        by_queue: dict[str, dict[str, int]] = {}
        async with self._redis.pipeline(transaction=False) as pipe:
            for bell in bells:
                queue = by_queue.setdefault(wire.queue(bell.queue_class), {})
                if len(queue) < _ENOUGH:
                    name = wire.job_id(bell.queue_class, bell.id, bell.epoch)
                    pipe.set(job_key_prefix + name, wire.wrap(bell.id, bell.epoch, now), px=wire.LASTS, nx=True)
                    queue[name] = now
            for name, scores in by_queue.items():
                pipe.zadd(name, scores, nx=True)
            await pipe.execute()

    def _fall_silent(self, error: Exception) -> None:
        self._silent_until = time.monotonic() + _SILENCE
        self.missed += 1
        if not self._out:
            _log.warning("bell_not_rung", error=type(error).__name__)
        self._out = True


def connect(url: str, *, connections: int, timeout: float) -> ArqRedis:
    """arq's client, JSON both ways; each connection attempt and each answer may take `timeout` seconds."""
    pool: BlockingConnectionPool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        **({} if url.startswith("unix:") else {"socket_keepalive": True}),
    )
    return ArqRedis(pool_or_conn=pool, job_serializer=wire.encode, job_deserializer=wire.decode)
