"""Accepting an erasure: from here on nothing about the person can be read, written, or brought back.

The ledger first, beside the keys. Then, in one transaction of the data database: the ids are fixed, the person's row and
whatever leads to it go, work about it ends, and the eraser's work is due. Then the keys are destroyed. A process that
dies anywhere in between is followed by the scheduler, which goes the rest of the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import structlog

from gateways import ledger
from gateways.key_store import KeyGone
from gateways.ledger import Entry
from jobs.letters import erase_letter
from jobs.resources import Resources
from models import accepting, work
from models import receipt as receipts
from models import subject as subjects
from models.accepting import Fixed, Held, NothingThere
from models.database import driver
from models.dataset import Target
from models.receipt import Receipt
from models.retraction import retract
from models.subject import SEALED_HANDLE
from models.work import Added

REASONS = ("subject_request", "consent_withdrawn", "account_closed", "contract_end", "error", "other")

_TRIES = 20
_STUCK = 10.0  # seconds after which an acceptance counts as left by its process

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be erased: one of `subject`, `conversation` (its number) and `agent`; who asks, and why."""

    space: int
    reason_code: str
    actor: str
    subject: UUID | None = None
    conversation: int | None = None
    agent: str | None = None

    @property
    def kind(self) -> str:
        """As the ledger names it."""
        return "subject" if self.subject else "conversation" if self.conversation else "agent"


async def accept(resources: Resources, wish: Wish) -> tuple[UUID, list[Added]]:
    """Answers the erasure's id and the work to ring for. NothingThere when there is nothing of it, or not any more."""
    closure = await _closure(resources, wish)
    entry = Entry(uuid4(), wish.space, wish.kind, _target(wish, closure), wish.reason_code, wish.actor)
    await ledger.write(resources.keys, entry, await _handles(resources, wish.space, closure))
    try:
        added = await apply(resources, entry)
    except (NothingThere, Held):
        await ledger.withdraw(resources.keys, entry.id)
        raise
    return entry.id, added


async def apply(resources: Resources, entry: Entry) -> list[Added]:
    """Commits an entry to the data, destroys the keys, and marks it. Safe to repeat at any point."""
    added = await _commit(resources, entry)
    subjects_gone = [UUID(one) for one in entry.target.get("subjects", ())]
    await resources.keys.destroy(subjects_gone)
    await ledger.mark_applied(resources.keys, entry.id)
    _log.info("erasure_accepted", erasure=str(entry.id), kind=entry.kind, space=entry.space)
    return added


async def finish(resources: Resources) -> list[Added]:
    """What a dead process left between the ledger and the data goes the rest of its way. For the scheduler."""
    added: list[Added] = []
    for entry in await ledger.unfinished(resources.keys, _STUCK):
        try:
            added += await apply(resources, entry)
        except (NothingThere, Held):  # nobody was told that it was accepted
            await ledger.withdraw(resources.keys, entry.id)
    return added


async def replay(resources: Resources) -> int:
    """Erases again what a restored backup has brought back; answers how many erasures."""
    entries = await ledger.missing(resources.keys, resources.database)
    for entry in entries:
        await _commit(resources, entry, found_or_not=True)
        await resources.keys.destroy([UUID(one) for one in entry.target.get("subjects", ())])
    return len(entries)


async def _closure(resources: Resources, wish: Wish) -> Sequence[UUID]:
    if wish.subject is None:
        return ()
    async with resources.database.begin(wish.space) as tx:
        return await subjects.closure(await driver(tx), wish.space, wish.subject)


def _target(wish: Wish, closure: Sequence[UUID]) -> dict[str, Any]:
    if wish.agent is not None:
        return {"agent": wish.agent}
    if wish.conversation is not None:
        return {"conversations": [wish.conversation]}
    return {"subjects": [one.hex for one in closure]}


async def _handles(resources: Resources, space: int, closure: Sequence[UUID]) -> list[bytes]:
    """The HMACs by which the person will be recognised, should they come back with what they said before."""
    if not closure:
        return []
    async with resources.database.begin(space) as tx:
        found = await subjects.handles(await driver(tx), space, closure)
    suppression = await ledger.suppression_key(resources.keys)
    try:
        keys = await resources.keys.keys(list(closure))
    except KeyGone:
        raise NothingThere from None
    return [
        ledger.suppression_digest(suppression, space, kind, keys[subject].open(sealed, SEALED_HANDLE))
        for subject, kind, sealed in found
    ]


async def _commit(resources: Resources, entry: Entry, *, found_or_not: bool = False) -> list[Added]:
    # A batch of turns may hold what this needs, and wait for what this has: this one gives way, and tries again.
    for _ in range(_TRIES):
        try:
            return await _commit_once(resources, entry, found_or_not=found_or_not)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            continue
    return await _commit_once(resources, entry, found_or_not=found_or_not)


async def _commit_once(resources: Resources, entry: Entry, *, found_or_not: bool) -> list[Added]:
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await accepting.prepare(connection, entry.space)
        if await accepting.is_accepted(connection, entry.space, entry.id):
            return []
        fixed = await accepting.fix(connection, entry.space, entry.target)
        if not fixed.found and not found_or_not:
            raise NothingThere
        await _raise_fence(connection, entry, fixed)
        return await work.add_many(connection, [(erase_letter(entry.space, entry.id), None)])


async def _raise_fence(connection: Any, entry: Entry, fixed: Fixed) -> None:
    conversations, logs = tuple(fixed.target["conversations"]), tuple(fixed.target["logs"])
    await retract(
        connection, Target(entry.space, logs=logs, conversations=conversations)
    )  # no log that stays tells of it
    counts = await accepting.take_away(connection, entry.space, fixed)
    await accepting.record(connection, entry, fixed, counts)
    ids = {"erasure": str(entry.id), "subjects": [subjects.opaque(UUID(one)) for one in fixed.target["subjects"]]}
    await receipts.write(
        connection,
        Receipt(entry.space, entry.actor, "erasure.accepted", ids, {name: n for name, n in counts.items() if n}),
    )
