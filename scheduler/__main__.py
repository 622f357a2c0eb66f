"""The door of both roles: `python -m scheduler worker` runs work, `python -m scheduler scheduler` finds what is due."""

import argparse
import asyncio
import signal
from dataclasses import replace
from datetime import timedelta

import uvloop

from config.logging import configure
from config.settings import Settings, Workers, load_or_exit
from intake.distilling import distil
from intake.erasure import finish
from jobs.deliver import Deliveries, deliver
from jobs.erase import erase
from jobs.expire import Sweeps, expire
from jobs.export import expire_export, export_subject
from jobs.job import BackOff, BulkJob, Job
from jobs.letters import (
    DELIVER,
    DISTIL,
    ERASE,
    EXPIRE,
    EXPIRE_EXPORT,
    EXPORT,
    OBSERVE,
    REFLECT,
    REMASK,
    SEAL,
    QueueClass,
)
from jobs.observe import observe
from jobs.reflect import reflect
from jobs.remask import remask
from jobs.resources import Workshop, furnished, opened, rhythm
from jobs.seal import due as seals_due
from jobs.seal import seal
from jobs.start import check_stores_or_exit
from jobs.watch import Watch
from scheduler.attention import Attention
from scheduler.reconciler import Hook, Rounds, run_scheduler
from scheduler.worker import Staffing, run_worker

_ONE_RUN = timedelta(minutes=30)  # many calls, each with the model's own time limit
_ONE_ERASURE = timedelta(hours=6)  # one that takes longer goes on where it was
_ONE_EXPORT = timedelta(hours=6)  # as large as it may be

JOBS: dict[str, Job[Workshop] | BulkJob[Workshop]] = {
    OBSERVE: Job(QueueClass.MEMORY, observe, _ONE_RUN),
    REFLECT: Job(QueueClass.MEMORY, reflect, _ONE_RUN),
    REMASK: Job(QueueClass.MEMORY, remask, _ONE_RUN, back_off=BackOff(longest=timedelta(minutes=2))),
    SEAL: Job(QueueClass.HOUSEKEEPING, seal, _ONE_RUN),
    EXPIRE: Job(QueueClass.HOUSEKEEPING, expire, _ONE_EXPORT),
    EXPORT: Job(QueueClass.INTERACTIVE, export_subject, _ONE_EXPORT, attempts=8, crashes=5),
    ERASE: Job(QueueClass.INTERACTIVE, erase, _ONE_ERASURE),
    DISTIL: Job(QueueClass.INTERACTIVE, distil, _ONE_RUN, attempts=8, crashes=5),
    DELIVER: BulkJob(QueueClass.HOUSEKEEPING, deliver, _ONE_RUN),
    EXPIRE_EXPORT: Job(QueueClass.HOUSEKEEPING, expire_export, _ONE_RUN),
}


def main() -> None:
    """Runs one role until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m scheduler", description=__doc__)
    parser.add_argument("role", choices=("worker", "scheduler"))
    role = parser.parse_args().role
    settings = load_or_exit()
    configure(settings.logs, role)
    check_stores_or_exit(settings)
    uvloop.run(_work(settings) if role == "worker" else _schedule(settings))


async def _work(settings: Settings) -> None:
    async with opened(settings, within=settings.stores.start_within) as resources, furnished(resources) as workshop:
        redis = settings.stores.redis_url.get_secret_value()
        watch = Watch(resources.database, resources.keys, resources.keys.forget_all)
        staffing = replace(_staffing(settings.workers), trusts=watch.trusts)
        await run_worker(resources.database, redis, JOBS, workshop, _told_to_stop(), staffing)


async def _schedule(settings: Settings) -> None:
    workers = settings.workers
    rounds = Rounds(workers.sweep_every, workers.job_records, workers.worker_claim)
    async with opened(settings, within=settings.stores.start_within) as resources:
        pace = rhythm(settings) if settings.memory.observational_memory else None
        hooks: tuple[Hook, ...] = (
            Attention(resources.database, pace).attend,
            lambda: seals_due(resources),
            lambda: finish(resources),
            Sweeps(resources).due,
            Deliveries(resources).due,
        )
        await run_scheduler(resources.database, resources.bell, JOBS, _told_to_stop(), hooks, rounds)


def _staffing(workers: Workers) -> Staffing:
    slots = {QueueClass.INTERACTIVE: 8, QueueClass.MEMORY: workers.worker_jobs, QueueClass.HOUSEKEEPING: 4}
    return Staffing(slots, workers.space_jobs, workers.worker_claim, workers.worker_grace, workers.sweep_every)


def _told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    return stop


if __name__ == "__main__":
    main()
