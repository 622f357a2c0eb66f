"""Sending a turn that was set aside back to be observed."""

from jobs.letters import observe_letter
from jobs.resources import Resources
from models import log as logs
from models import quarantine, work
from models.columns import utc_now
from models.database import driver
from models.work import Added


class NotQuarantined(Exception):
    """There is no such record in this space."""


class ReleasedAlready(Exception):
    """The turn was sent back before."""


async def retry(resources: Resources, space: int, record_id: int) -> list[Added]:
    """The turn is pending again, and due now; answers the work to ring for. With memory off it stays pending."""
    async with resources.database.begin(space) as tx:
        record = await quarantine.by_id(tx, space, record_id)
        log = None if record is None else await logs.lock(tx, space, record.log_id)
        if log is None:
            raise NotQuarantined
        if not await quarantine.release(tx, space, record_id, log, utc_now()):
            raise ReleasedAlready
        log.flush_through = log.last_seq
        if not resources.settings.memory.observational_memory:
            return []
        return await work.add_many(await driver(tx), [(observe_letter(space, log.id), None)])
