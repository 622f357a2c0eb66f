"""The worker: claims what is due, runs it, keeps its claims alive, and goes in good order when told to."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from arq.connections import ArqRedis
from asyncpg import Pool
from prometheus_client import CollectorRegistry

from jobs import bell
from jobs.bell import Bell
from jobs.job import R, Registry
from jobs.letters import QueueClass
from models.database import Database
from scheduler import connections
from scheduler.closing import Closer
from scheduler.desk import Desk, Trusts
from scheduler.errand import Stop
from scheduler.heartbeat import Heartbeat
from scheduler.lane import Lane, Room
from scheduler.outage import Outage
from scheduler.tally import Tally

_REDIS_PATIENCE = 5.0  # seconds an answer may take
_TO_STOP, _TO_FINISH, _TO_HAND_BACK = 0.05, 0.75, 0.2  # shares of the grace period
_FOR_THE_REST = 3  # connections besides one for each lane: heartbeat, closing, retries
_PAUSE = 1.0  # seconds before a lane that broke runs again

_log = structlog.get_logger()


def _default_slots() -> Mapping[QueueClass, int]:
    return {QueueClass.INTERACTIVE: 8, QueueClass.MEMORY: 32, QueueClass.HOUSEKEEPING: 4}


async def _at_all_times() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Staffing:
    """How a worker works: runs at once by class, jobs of one space at once over all workers (in each class).

    While `trusts` answers False nothing new is begun.
    """

    slots: Mapping[QueueClass, int] = field(default_factory=_default_slots)
    per_space: int = 16
    claim: timedelta = timedelta(seconds=15)
    grace: timedelta = timedelta(seconds=20)
    look_every: timedelta = timedelta(seconds=2)
    trusts: Trusts = _at_all_times


async def run_worker(
    database: Database,
    redis_url: str,
    jobs: Registry[R],
    resources: R,
    stop: asyncio.Event,
    staffing: Staffing | None = None,
    metrics: CollectorRegistry | None = None,
) -> None:
    """Works until `stop` is set, then finishes or hands back what runs, within the grace period.

    Neither store's absence ends it. Classes without a job in `jobs` get no slots.
    """
    staffing = staffing or Staffing()
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    async with (
        _redis(redis_url, len(staffing.slots)) as redis,
        connections.opened(database, len(staffing.slots) + _FOR_THE_REST) as pool,
    ):
        desk = _desk(owner, pool, Bell(redis), jobs, resources, staffing, Tally(metrics or CollectorRegistry()))
        lanes = _lanes(desk, staffing, redis)
        _log.info("worker_started", owner=owner, slots={lane.queue_class: lane.max_jobs for lane in lanes})
        pulse = asyncio.create_task(desk.heartbeat.keep_beating())
        running = [asyncio.create_task(_keep_open(lane)) for lane in lanes]
        try:
            await stop.wait()
            await _close(lanes, running, staffing.grace.total_seconds())
        finally:
            await _cancel(pulse, *running, *(run for lane in lanes for run in lane.tasks.values()))
        _log.info("worker_stopped", owner=owner)


@asynccontextmanager
async def _redis(url: str, lanes: int) -> AsyncIterator[ArqRedis]:
    # One connection listens for each lane; the others answer, and ring.
    redis = bell.connect(url, connections=2 * lanes + 4, timeout=_REDIS_PATIENCE)
    try:
        yield redis
    finally:
        await redis.aclose(close_connection_pool=True)


def _desk(
    owner: str, pool: Pool, ring: Bell, jobs: Registry[R], resources: R, staffing: Staffing, tally: Tally
) -> Desk[R]:
    away = Outage("postgresql")
    return Desk(
        owner=owner,
        pool=pool,
        bell=ring,
        jobs=jobs,
        resources=resources,
        closer=Closer(pool, away),
        heartbeat=Heartbeat(pool, owner, staffing.claim, away),
        away=away,
        tally=tally,
        trusts=staffing.trusts,
    )


def _lanes(desk: Desk[R], staffing: Staffing, redis: ArqRedis) -> list[Lane[R]]:
    staffed = {job.queue_class for job in desk.jobs.values()}
    return [
        Lane(
            desk, str(name), Room(slots, staffing.per_space, staffing.claim, staffing.look_every.total_seconds()), redis
        )
        for name, slots in staffing.slots.items()
        if name in staffed
    ]


async def _keep_open(lane: Lane[Any]) -> None:
    """Runs a lane until its door is closed; one that breaks is noted, and goes on."""
    while lane.allow_pick_jobs:
        try:
            await lane.async_run()
        except Exception as error:  # noqa: BLE001 - a worker must outlive any of them; each is logged as an error
            _log.error("lane_broke", queue_class=lane.queue_class, exc_info=error)
            await asyncio.sleep(_PAUSE)


async def _close(lanes: list[Lane[Any]], running: list[asyncio.Task[None]], grace: float) -> None:
    for lane in lanes:
        lane.close_door()
    await asyncio.wait(running, timeout=grace * _TO_STOP)
    await _finish(lanes, grace * _TO_FINISH)
    for lane in lanes:
        lane.stop(Stop.CLOSING)
    left = await _finish(lanes, grace * _TO_HAND_BACK)
    if left:
        _log.warning("runs_abandoned", runs=left)  # their claims end, and others take them over


async def _finish(lanes: list[Lane[Any]], within: float) -> int:
    runs = [task for lane in lanes for task in lane.tasks.values()]
    if not runs:
        return 0
    return len((await asyncio.wait(runs, timeout=within))[1])


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=_PAUSE)
