"""Turns that were set aside: listed page by page, and sent back to be observed."""

from collections.abc import Sequence

from sqlmodel import col, select

from jobs.letters import observe_letter
from jobs.resources import Resources
from models import log as logs
from models import quarantine, work
from models.columns import utc_now
from models.database import driver
from models.log import Log
from models.quarantine import Quarantined
from models.work import Added


class NotQuarantined(Exception):
    """There is no such record in this space, or it is another agent's."""


class ReleasedAlready(Exception):
    """The turn was sent back before."""


async def held(resources: Resources, space: int, agent: str | None, after: int, most: int) -> Sequence[Quarantined]:
    """What is set aside now with ids past `after`, oldest first, at most so many; `agent` None: of every agent."""
    query = select(Quarantined).where(
        col(Quarantined.space_id) == space, col(Quarantined.released_at).is_(None), col(Quarantined.id) > after
    )
    if agent is not None:
        query = query.join(Log, col(Log.id) == col(Quarantined.log_id)).where(col(Log.agent) == agent)
    async with resources.database.begin(space) as tx:
        return (await tx.execute(query.order_by(col(Quarantined.id)).limit(most))).scalars().all()


async def retry(resources: Resources, space: int, agent: str | None, record_id: int) -> list[Added]:
    """The turn is pending again, and due now; answers the work to ring for. With memory off it stays pending."""
    async with resources.database.begin(space) as tx:
        record = await quarantine.by_id(tx, space, record_id)
        log = None if record is None else await logs.lock(tx, space, record.log_id)
        if log is None or agent not in (None, log.agent):
            raise NotQuarantined
        if not await quarantine.release(tx, space, record_id, log, utc_now()):
            raise ReleasedAlready
        log.flush_through = log.last_seq
        if not resources.settings.memory.observational_memory:
            return []
        return await work.add_many(await driver(tx), [(observe_letter(space, log.id), None)])
