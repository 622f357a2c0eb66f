"""The weather of a storm: what is done to a deployment while chat servers go on posting."""

import asyncio
import contextlib
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.chaos.deployment import Deployment, Program, eventually

MIX = {
    "play": {
        "good": 30,
        "slow": 40,
        "fenced": 6,
        "prose": 5,
        "truncated": 5,
        "babble": 5,
        "garbage": 2,
        "empty": 4,
        "refusal": 4,
        "loop": 4,
        "rate_limited": 1,
        "server_error": 2,
    },
    "seconds": 1.2,
    "retry_after": "1",
}
# What must stand nowhere in the clear: what was said, by whom, in which conversation.
TEXTS = re.compile(rb"tok-[b-df-hj-np-tv-z]{1,9}q\b|person-\d|case-\d|My parcel")


@dataclass(slots=True)
class Weather:
    """`happened` counts what was done; `told` are texts that Redis was caught with; `answered`: the API accepted turns."""

    deployment: Deployment
    chance: random.Random
    happened: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    _beside: "list[asyncio.Task[None]]" = field(default_factory=list)

    async def blow(self, seconds: float) -> None:
        """Everything once before anything comes again, for at least so long; afterwards every process runs."""
        await self._model_back()
        self._beside.append(asyncio.create_task(self._keep_alive()))
        ends = time.monotonic() + seconds
        while True:
            # The outage last, for after it workers keep away for a while.
            for event in (*self.chance.sample(_EVENTS, len(_EVENTS)), Weather._model_out):
                self.happened[event.__name__.strip("_")] += 1
                await event(self)
                await asyncio.sleep(self.chance.uniform(0.1, 0.6))
            if time.monotonic() > ends:
                break
        for task in self._beside:
            task.cancel()
        for program in self.deployment.programs():
            program.send(signal.SIGCONT)
            program.revive()

    async def _keep_alive(self) -> None:
        """A process that comes up while PostgreSQL is away ends; somebody starts it again."""
        while True:
            await asyncio.sleep(0.5)
            self.happened["ended_by_itself"] += sum(program.revive() for program in self.deployment.programs())

    async def _busy_worker(self) -> Program:
        """One that holds a claim, where one soon does."""
        try:
            held = await eventually(self._holders, bool, 3)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            held = set()
        workers = self.deployment.workers
        return self.chance.choice([worker for worker in workers if worker.pid in held] or workers)

    async def _holders(self) -> set[int]:
        connection = await asyncpg.connect(self.deployment.data.url)
        try:
            rows = await connection.fetch("SELECT DISTINCT owner FROM work WHERE state = 'claimed'")
        finally:
            await connection.close()
        return {int(row["owner"].split(":")[1]) for row in rows}

    async def _worker_killed(self) -> None:
        worker = await self._busy_worker()
        await worker.kill()
        worker.start()

    async def _worker_paused(self) -> None:
        """For longer than its claim, so that it wakes up to find others at its work."""
        worker = await self._busy_worker()
        worker.send(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(3.5, worker.send, signal.SIGCONT)

    async def _worker_replaced(self) -> None:
        await (await self._busy_worker()).replace()

    async def _scheduler_killed(self) -> None:
        scheduler = self.chance.choice(self.deployment.schedulers)
        await scheduler.kill()
        scheduler.start()

    async def _api_killed_right_after_an_answer(self) -> None:
        self.answered.clear()
        await self.answered.wait()
        await self.deployment.api.kill()
        self.deployment.api.start()
        await self.deployment.ready()

    async def _model_out(self) -> None:
        await self.deployment.play("server_error")
        await asyncio.sleep(3)
        await self._model_back()

    async def _model_babbles(self) -> None:
        """Long enough for turns to be set aside, while other things happen."""
        await self.deployment.play("babble")
        self._beside.append(asyncio.create_task(self._model_back(8)))

    async def _model_back(self, after: float = 0) -> None:
        await asyncio.sleep(after)
        await self.deployment.play({**MIX, "seed": self.chance.randrange(1_000)})

    async def _redis_flushed(self) -> None:
        with contextlib.suppress(RedisError):
            await self.look_into_redis()
            async with self.redis() as redis:
                await redis.flushall()

    async def _redis_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.valkey.restart)

    async def _data_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.data.restart)

    async def _data_crashed(self) -> None:
        await asyncio.to_thread(self.deployment.data.kill)
        await asyncio.to_thread(self.deployment.data.restart)

    async def _keys_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.keys.restart)

    @asynccontextmanager
    async def redis(self) -> AsyncIterator[Redis]:
        redis = Redis.from_url(self.deployment.valkey.url)
        try:
            yield redis
        finally:
            await redis.aclose()

    async def look_into_redis(self) -> None:
        """Notes every text that Redis holds: there must never be one."""
        async with self.redis() as redis:
            async for key in redis.scan_iter():
                kind = await redis.type(key)
                read: dict[bytes, Callable[[], Awaitable[Any]]] = {
                    b"string": lambda key=key: redis.get(key),
                    b"zset": lambda key=key: redis.zrange(key, 0, -1),
                    b"hash": lambda key=key: redis.hgetall(key),
                    b"list": lambda key=key: redis.lrange(key, 0, -1),
                    b"set": lambda key=key: redis.smembers(key),
                }
                held = f"{key!r} {await read[kind]() if kind in read else ''!r}"
                self.told += [f"Redis holds {text.decode()}" for text in TEXTS.findall(held.encode())]


_EVENTS = [
    Weather._worker_killed,
    Weather._worker_killed,
    Weather._worker_paused,
    Weather._worker_paused,
    Weather._worker_replaced,
    Weather._scheduler_killed,
    Weather._api_killed_right_after_an_answer,
    Weather._model_babbles,
    Weather._redis_flushed,
    Weather._redis_restarted,
    Weather._data_restarted,
    Weather._data_crashed,
    Weather._keys_restarted,
]
