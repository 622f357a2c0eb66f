"""The clock of the queue benches: it needs nothing but Python, so that each peer's own interpreter can use it."""

import asyncio
import time
from collections.abc import Sequence


class Clock:
    """Counts runs, and knows when the first one began."""

    def __init__(self) -> None:
        self.expect(0)

    def expect(self, runs: int) -> None:
        self.first, self.left, self.all_ran = 0.0, runs, asyncio.Event()

    def ran(self, runs: int = 1) -> None:
        if not self.first:
            self.first = time.perf_counter()
        self.left -= runs
        if self.left <= 0:
            self.all_ran.set()

    def since_first(self) -> float:
        return time.perf_counter() - self.first


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    ordered = sorted(seconds)
    return round(ordered[len(ordered) // 2] * 1000, 2), round(ordered[len(ordered) * 99 // 100] * 1000, 2)
