"""An errand: one run of a job over what a worker claimed for it, from the claim to what became of it."""

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Generic

import structlog

from jobs.job import BulkJob, Job, R
from jobs.verdict import Hopeless, Later, Verdict
from models.work import Claim, Superseded
from scheduler import outage

_OVERTIME = 30.0  # seconds past its limit after which a run that will not end is given up to others

_log = structlog.get_logger()


class Stop(StrEnum):
    """Why a run was ended: its claim was taken over, its limit is past, an operator asked, the worker itself stops."""

    LOST = "lost"
    LATE = "late"
    ASKED = "asked"
    CLOSING = "closing"


@dataclass(slots=True, eq=False)
class Errand(Generic[R]):
    """`stopped` is set before the run is cancelled; `settling` once what is left is to write the outcome down."""

    claims: list[Claim]
    job: Job[R] | BulkJob[R]
    stopped: Stop | None = None
    settling: bool = False
    _task: "asyncio.Task[object] | None" = None
    _began: float = field(default_factory=time.monotonic)

    def begin(self, task: "asyncio.Task[object]") -> None:
        self._task = task

    def stop(self, why: Stop) -> None:
        """Cancels the run, unless it has come to its end."""
        if self.stopped is None and not self.settling and self._task is not None:
            self.stopped = why
            self._task.cancel()

    @property
    def worth_renewing(self) -> bool:
        """False for one that outlives its limit: whatever it does, its claim ends, and others may have the work."""
        return time.monotonic() < self._began + self.job.limit.total_seconds() + _OVERTIME

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


async def run(errand: Errand[R], resources: R) -> Verdict | Stop:
    """Runs the job to a verdict, within its limit. Only a cancellation from outside the worker passes through."""
    limit = errand.job.limit.total_seconds()
    alarm = asyncio.get_running_loop().call_later(limit, errand.stop, Stop.LATE)
    try:
        verdict: Verdict | Stop = await errand.job.run(errand.claims, resources)
    except Superseded:
        verdict = Stop.LOST
    except asyncio.CancelledError:
        verdict = _why_cancelled(errand)
    except Exception as error:  # noqa: BLE001 - whatever a job raises is a reason to try again, and is logged
        verdict = _failed(errand, error)
    finally:
        alarm.cancel()
    errand.settling = True
    return verdict


def _why_cancelled(errand: Errand[R]) -> Verdict | Stop:
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return Later(None, "cancelled_itself")
    if errand.stopped is None:
        raise asyncio.CancelledError
    task.uncancel()  # what follows writes down what became of the run, and must be able to wait
    return Later(None, "time_limit") if errand.stopped is Stop.LATE else errand.stopped


def _failed(errand: Errand[R], error: Exception) -> Later:
    first = errand.claims[0]
    away = outage.caused(error)
    _log.warning("job_failed", kind=first.kind, work_id=first.id, attempt=first.attempt, away=away, exc_info=error)
    return Later(None, type(error).__name__, counts=not away)


def settled(claim: Claim, job: Job[R] | BulkJob[R], later: Later) -> tuple[timedelta, Later] | Hopeless:
    """When a failed run is tried again; Hopeless once its attempts are used up."""
    tries = claim.attempt - claim.crashes
    if later.counts and job.attempts is not None and tries >= job.attempts:
        return Hopeless(later.error)
    in_a_row = 1 + (claim.waits if claim.last_error == later.error else 0)
    # Drawn at random, or all that failed together would come back together.
    delay = job.back_off.delay(in_a_row, random.random())  # noqa: S311 - no secret
    if later.seconds is not None and (later.seconds > 0 or later.counts):
        return timedelta(seconds=max(0.0, later.seconds)), later
    return delay, later  # a server that says "at once" is still backed off from
