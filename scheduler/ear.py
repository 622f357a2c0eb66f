"""The ear: hears the bell of one queue class, as long as there is room for what it says."""

import asyncio
from collections.abc import Container
from typing import NamedTuple

import structlog
from arq.connections import ArqRedis
from arq.constants import job_key_prefix

from jobs import wire
from jobs.wire import NotUnderstood
from models.claim import Rung
from scheduler.tally import Tally

_PATIENCE = 2.0  # seconds that one call listens; shorter than the connection's own patience
_MOST = 500  # bells at once

_log = structlog.get_logger()


class Heard(NamedTuple):
    """`unclear`: somebody rang, but what he said is gone or makes no sense; PostgreSQL knows."""

    rung: list[Rung]
    unclear: bool


class Ear:
    """Takes bells off the queue, most urgent first. A bell that is taken is used up, whatever becomes of it."""

    def __init__(self, redis: ArqRedis, queue_class: str, functions: Container[str], tally: Tally) -> None:
        self._redis, self._queue_class, self._functions = redis, queue_class, functions
        self._queue, self._tally = wire.queue(queue_class), tally
        self._appetite, self._opened = 1, asyncio.Event()

    def open(self, appetite: int) -> None:
        """Hears up to so many more; 0: none until opened again."""
        self._appetite = min(appetite, _MOST)
        if appetite:
            self._opened.set()
        else:
            self._opened.clear()

    async def listen(self) -> Heard | None:
        """What is rung, or nothing after a while; None: there was no room, so nobody asked. Redis's errors pass."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._opened.wait()
        except TimeoutError:
            return None
        first = await self._redis.bzpopmin(self._queue, timeout=_PATIENCE)
        if first is None:
            return Heard([], unclear=False)
        self._opened.clear()
        return await self._read(first[1])

    async def _read(self, first: bytes) -> Heard:
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.getdel(_key(first))
            pipe.zpopmin(self._queue, max(self._appetite - 1, 1))
            content, more = await pipe.execute()
        contents = [content]
        if more:
            async with self._redis.pipeline(transaction=False) as pipe:
                for name, _ in more:
                    pipe.getdel(_key(name))
                contents += await pipe.execute()
        self._tally.bells.labels(self._queue_class).inc(len(contents))
        rung = [bell for one in contents if one is not None and (bell := self._understood(one))]
        return Heard(rung, unclear=len(rung) < len(contents))

    def _understood(self, content: bytes) -> Rung | None:
        try:
            return wire.unwrap(content, self._functions)
        except NotUnderstood as error:
            # Its row, if it has one, is in PostgreSQL, and is found there.
            self._tally.noise.labels(self._queue_class).inc()
            _log.error("bell_not_understood", queue_class=self._queue_class, why=str(error))
            return None


def _key(name: bytes) -> bytes:
    return job_key_prefix.encode() + name
