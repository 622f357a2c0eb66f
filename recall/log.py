"""Opening one person's log: the lines that are live now, decrypted, in memory only."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gateways.key_store import KeyGone
from jobs.resources import Resources
from memory.budget import ranked
from memory.observation import Line
from models import log as logs
from models import observation
from models.content import open_line
from models.log import Log


@dataclass(frozen=True, slots=True)
class Opened:
    """Oldest line first. `log` is None where nobody has one; `on` is False where memory is off, and nothing was read."""

    lines: tuple[Line, ...]
    generation: int
    log: Log | None
    on: bool = True


_NO_LOG = Opened((), 1, None)  # as a log is that has no line yet: nobody learns from it whether there is one
_OFF = Opened((), 0, None, on=False)


async def lines(resources: Resources, space: int, subject: UUID | None, agent: str, context: str) -> Opened:
    """The live lines of a subject with an agent, in a context. An unknown subject, or an erased one, has none."""
    if not resources.settings.memory.observational_memory:
        return _OFF
    if subject is None:
        return _NO_LOG
    async with resources.database.begin(space) as tx:
        log = await logs.find(tx, space, subject, agent, context)
        rows = [] if log is None else await observation.of_generation(tx, log.id, log.generation)
    if log is None:
        return _NO_LOG
    try:
        key = await resources.keys.key(subject)
    except KeyGone:  # erased since the read
        return _NO_LOG
    # A long log takes a while to decrypt, and the other requests go on meanwhile.
    opened = await asyncio.to_thread(lambda: tuple(open_line(row, key) for row in rows))
    return Opened(opened, log.generation, log)


def within(opened: Sequence[Line], budget: int) -> list[Line]:
    """The lines whose texts together are at most `budget` tokens, in their order: high priority and recent ones stay."""
    replaced = {line.supersedes for line in opened if line.supersedes is not None}
    kept: set[int] = set()
    left = budget
    for line in ranked(opened, budget, lambda line: line.tokens, replaced):
        if line.tokens <= left:
            left -= line.tokens
            kept.add(line.id)
    return [line for line in opened if line.id in kept]
