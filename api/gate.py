"""Are these data the ones that the ledger knows? Looked at once a second, however many requests come."""

import time
from dataclasses import dataclass

import structlog

from api.problems import Problem
from gateways import ledger
from jobs.resources import Resources
from models.patience import AWAY

_FRESH = 1.0  # seconds that a look serves

_log = structlog.get_logger()


@dataclass(slots=True)
class Gate:
    """Shut while the ledger is ahead of the data: somebody has restored a backup from before an erasure."""

    resources: Resources
    _shut: bool = False
    _looked: float = float("-inf")

    async def pass_through(self) -> None:
        """Returns where the data may be served; a problem where they may not."""
        now = time.monotonic()
        if now - self._looked > _FRESH:
            self._looked = now  # whoever comes meanwhile goes by the look before
            await self._look()
        if self._shut:
            raise Problem(
                503,
                "erasures_to_replay",
                "These data are from before an erasure: `afterturn migrate --replay-erasures`",
            )

    async def _look(self) -> None:
        try:
            shut = await ledger.is_ahead(self.resources.keys, self.resources.database)
        except AWAY:
            return  # what was seen last holds; the request itself will find out what is away
        if shut and not self._shut:
            _log.error("ledger_ahead_of_data")
        self._shut = shut
