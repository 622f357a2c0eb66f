"""A lane: one queue class of one worker. It listens to the bell, looks into PostgreSQL, and runs what it claims.

It is an arq worker whose way from the queue to a job is replaced. A bell is taken out of Redis before its row is
claimed: the claim in PostgreSQL is what keeps others away, so no key in Redis marks what runs, none has to outlive a
crash, and the queue holds only what nobody has heard yet. A bell that is lost on that way costs the time until the
next look.
"""

import asyncio
import contextlib
import os
import random
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic

import structlog
from arq.connections import ArqRedis
from arq.worker import Worker, func
from asyncpg import Connection

from jobs import wire
from jobs.job import R
from models import claim as claims
from models.claim import Crowded, Rung, Terms
from models.work import Claim
from scheduler import outage
from scheduler.desk import Desk
from scheduler.ear import Ear, Heard
from scheduler.errand import Errand, Stop
from scheduler.outage import Outage

_AFTER_A_RUN = 0.05  # seconds; what waited for its scope or its space may be free now
_WHILE_AWAY = 0.5  # seconds between looks while a store is away
_JOSTLE = 0.004  # seconds at most before claiming again where others claim too
_HEALTH_EVERY = 10  # seconds

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Room:
    """How much a lane takes on: runs at once; jobs of one space, over all workers; how often it looks unasked."""

    slots: int
    per_space: int
    claim: timedelta
    look_every: float


class Lane(Worker, Generic[R]):
    """`async_run` runs it until `close_door`; runs go on in `tasks`."""

    def __init__(self, desk: Desk[R], queue_class: str, room: Room, redis: ArqRedis) -> None:
        queue = wire.queue(queue_class)
        super().__init__(
            [func(desk.work, name=wire.FUNCTION, keep_result=0, max_tries=1_000_000)],  # type: ignore[arg-type]  # its one argument is an errand
            queue_name=queue,
            redis_pool=redis,
            handle_signals=False,
            max_jobs=room.slots,
            keep_result=0,
            health_check_interval=_HEALTH_EVERY,
            health_check_key=f"arq:{queue}:{socket.gethostname()}:{os.getpid()}",
            job_serializer=wire.encode,
            job_deserializer=wire.decode,
            log_results=False,
        )
        self.queue_class = queue_class
        self._desk, self._room = desk, room
        self._groups = _groups(desk, queue_class, room)
        self._singles = next((terms for terms, batch in self._groups if batch == 1), None)
        self._largest = max(batch for _, batch in self._groups)
        self._errands: dict[str, Errand[R]] = {}
        self._heard: list[Rung] = []
        self._wake, self._next_look = asyncio.Event(), 0.0
        self._ear, self._bells_away = Ear(redis, queue_class, self.functions, desk.tally), Outage("redis")

    async def main(self) -> None:
        """arq's loop: until the door is closed."""
        listening = asyncio.create_task(self._listen())
        try:
            while self.allow_pick_jobs:
                await self._poll_iteration()
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    def close_door(self) -> None:
        """Takes nothing on any more."""
        self.allow_pick_jobs = False
        self._wake.set()

    def stop(self, why: Stop) -> None:
        """Ends what still runs."""
        for errand in self._errands.values():
            errand.stop(why)

    async def _poll_iteration(self) -> None:
        await self._until_woken()
        free = self._free()
        if not free or not self.allow_pick_jobs:
            return
        if not await self._desk.trusts():
            await asyncio.sleep(_WHILE_AWAY)
            self._look_in(0)
            return
        try:
            await self._take(free)
        except Crowded:
            self._look_in(random.uniform(0, _JOSTLE))  # noqa: S311 - no secret
        except outage.DATABASE as error:
            self._desk.away.began(error)
            await asyncio.sleep(_WHILE_AWAY)
            self._look_in(0)
        # While PostgreSQL is known to hold more, the bell says nothing new.
        self._ear.open(self._free() * self._largest if self._next_look > time.monotonic() else 0)

    async def _until_woken(self) -> None:
        wait = self._next_look - time.monotonic() if self._free() else None
        if wait is None or wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
        self._wake.clear()

    async def _take(self, free: int) -> None:
        looks = time.monotonic() >= self._next_look
        heard, self._heard = self._heard, []
        if not heard and not looks:
            return
        async with self._desk.pool.acquire() as connection:
            if heard:
                await self._answer(connection, heard, free)
            if looks and self._free():
                await self._look(connection)
        self._desk.away.ended()

    async def _answer(self, connection: Connection, heard: Sequence[Rung], free: int) -> None:
        if self._singles is not None:
            for claim in await claims.rung(connection, self._singles, heard, free):
                self._start([claim])
        if len(heard) > free or len(self._groups) > 1 or self._singles is None:
            self._look_in(0)  # there is more than was answered

    async def _look(self, connection: Connection) -> None:
        self._next_look = time.monotonic() + self._room.look_every * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        self._groups = self._groups[1:] + self._groups[:1]
        for terms, batch in self._groups:
            asked = self._free() * batch
            found = await claims.due(connection, terms, asked) if asked else []
            for first in range(0, len(found), batch):
                self._start(found[first : first + batch])
            if len(found) == asked:
                self._look_in(0)  # there may be more

    def _start(self, held: list[Claim]) -> None:
        name = wire.job_id(self.queue_class, held[0].id, held[0].epoch)
        errand = self._errands[name] = Errand(held, self._desk.jobs[held[0].kind])
        task = self.loop.create_task(self.functions[wire.FUNCTION].coroutine(self.ctx, errand))
        errand.begin(task)
        self.tasks[name] = task
        task.add_done_callback(lambda ended: self._ended(name, ended))

    def _ended(self, name: str, task: "asyncio.Task[Any]") -> None:
        del self.tasks[name], self._errands[name]
        self.jobs_complete += 1
        if not task.cancelled() and (error := task.exception()):
            _log.error("errand_broke", name=name, exc_info=error)
        self._look_in(_AFTER_A_RUN)

    async def _listen(self) -> None:
        while True:
            try:
                heard = await self._ear.listen()
                await self.record_health()
            except outage.REDIS as error:
                self._bells_away.began(error)
                await asyncio.sleep(_WHILE_AWAY)
                self._look_in(0)
                continue
            if heard is not None:
                self._bells_away.ended()
                self._note(heard)

    def _note(self, heard: Heard) -> None:
        self._heard += heard.rung
        if heard.unclear:
            self._look_in(0)
        if heard.rung:
            self._wake.set()

    def _free(self) -> int:
        return self.max_jobs - len(self.tasks)

    def _look_in(self, seconds: float) -> None:
        self._next_look = min(self._next_look, time.monotonic() + seconds)
        self._wake.set()


def _groups(desk: Desk[R], queue_class: str, room: Room) -> list[tuple[Terms, int]]:
    """Kinds that are claimed together, and how many rows make one run: the single ones together, each bulk kind alone."""
    batches = {kind: job.batch for kind, job in desk.jobs.items() if job.queue_class == queue_class}
    singles = tuple(kind for kind, batch in batches.items() if batch == 1)
    groups = [(singles, 1)] if singles else []
    groups += [((kind,), batch) for kind, batch in batches.items() if batch > 1]
    return [
        (Terms(desk.owner, queue_class, kinds, room.claim, room.per_space * batch), batch) for kinds, batch in groups
    ]
