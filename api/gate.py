"""Nothing is served of data that are from before an erasure."""

from dataclasses import dataclass

from api.problems import Problem
from jobs.watch import Watch


@dataclass(frozen=True, slots=True)
class Gate:
    """Shut while the ledger is ahead of the data: somebody has restored a backup."""

    watch: Watch

    async def pass_through(self) -> None:
        """Returns where the data may be served; a problem where they may not."""
        if not await self.watch.trusts():
            raise Problem(
                503,
                "erasures_to_replay",
                "These data are from before an erasure: `afterturn migrate --replay-erasures`",
            )
