"""Asking for a log's pending turns to be observed now."""

from dataclasses import dataclass
from uuid import UUID

from jobs.letters import observe_letter
from jobs.resources import Resources
from models import log as logs
from models import work
from models.database import driver
from models.work import Added


@dataclass(frozen=True, slots=True)
class Flushed:
    """What was pending, and the work to ring for. `on` is False where memory is off, and nothing was asked."""

    pending_turns: int = 0
    pending_tokens: int = 0
    added: tuple[Added, ...] = ()
    on: bool = True


async def flush(resources: Resources, space: int, subject: UUID | None, agent: str, context: str) -> Flushed:
    """Makes all that a log holds by now due now. Turns that arrive later wait as they would have."""
    if not resources.settings.memory.observational_memory:
        return Flushed(on=False)
    if subject is None:
        return Flushed()
    async with resources.database.begin(space) as tx:
        found = await logs.find(tx, space, subject, agent, context)
        log = None if found is None else await logs.lock(tx, space, found.id)
        if log is None or log.pending_turns == 0:
            return Flushed()
        log.flush_through = log.last_seq
        added = await work.add_many(await driver(tx), [(observe_letter(space, log.id), None)])
        return Flushed(log.pending_turns, log.pending_tokens, tuple(added))
