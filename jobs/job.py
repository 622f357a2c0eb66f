"""What a job is: a function over a claim, and its limits.

A job reads, thinks, and writes in one last transaction, in which it also completes its row:

    async def observe(claim: Claim, resources: Resources) -> Verdict:
        ...
        async with database.begin(claim.space_id) as tx:
            ...
            await work.complete(await driver(tx), claim)
        return Done()

Raising means: try again later, as the job's back-off says. `Superseded` must pass through it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from jobs.letters import QueueClass
from jobs.verdict import Verdict
from models.work import Claim

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to wait after the nth failure: anything up to `first` · 2ⁿ⁻¹, at most `longest` (full jitter)."""

    first: timedelta = timedelta(seconds=2)
    longest: timedelta = timedelta(minutes=10)

    def delay(self, attempt: int, chance: float) -> timedelta:
        """`attempt` from 1; `chance` from 0 to 1."""
        longest: timedelta = min(self.longest, self.first * 2 ** min(max(attempt, 1) - 1, 30))
        return longest * chance


@dataclass(frozen=True, slots=True)
class Job(Generic[R]):
    """One kind of work, declared once.

    `limit`: how long one run may take. `attempts`, `crashes`: after how many failures that count, or dead workers, it
    is given up; None: never.
    """

    queue_class: QueueClass
    function: Callable[[Claim, R], Awaitable[Verdict]]
    limit: timedelta
    attempts: int | None = None
    crashes: int | None = None
    back_off: BackOff = field(default_factory=BackOff)

    @property
    def batch(self) -> int:
        return 1

    async def run(self, claims: Sequence[Claim], resources: R) -> Verdict:
        return await self.function(claims[0], resources)


@dataclass(frozen=True, slots=True)
class BulkJob(Generic[R]):
    """As Job, for cheap work of which there is much: up to `batch` rows are claimed, run and completed together."""

    queue_class: QueueClass
    function: Callable[[Sequence[Claim], R], Awaitable[Verdict]]
    limit: timedelta
    attempts: int | None = None
    crashes: int | None = None
    back_off: BackOff = field(default_factory=BackOff)
    batch: int = 250

    async def run(self, claims: Sequence[Claim], resources: R) -> Verdict:
        return await self.function(claims, resources)


Registry = Mapping[str, Job[R] | BulkJob[R]]
