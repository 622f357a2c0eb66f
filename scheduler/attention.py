"""A safety net under the outbox: gives work to logs that wait and have none, or have it too late, stretch by stretch."""

from dataclasses import dataclass

from jobs.letters import observe_letter
from models import attention, work
from models.database import Database, driver
from models.log import Rhythm
from models.work import Added

_STRETCH = 2_000  # waiting logs looked at in one round


@dataclass(slots=True)
class Attention:
    """Walks over the waiting logs, round after round. Two at once do no harm: equal work is added once.

    `pace` is when logs are due by this process's settings; None: memory is off.
    """

    database: Database
    pace: Rhythm | None
    _after: int = 0

    async def attend(self) -> list[Added]:
        """One round; answers the work that was added, to be rung."""
        async with self.database.begin_everywhere() as tx:
            connection = await driver(tx)
            self._after, found = await attention.walk(connection, self._after, _STRETCH, self.pace)
            letters = [(observe_letter(one.space, one.log_id), one.due_at) for one in found]
            return await work.add_many(connection, letters)
