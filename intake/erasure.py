"""Accepting an erasure: from here on nothing about the person can be read, written, or brought back.

The ledger first, beside the keys. Then, in one transaction of the data database: the ids are fixed, the person's row and
whatever leads to it go, work about it ends, and the eraser's work is due. Then the keys are destroyed. A process that
dies anywhere in between is followed by the scheduler, which goes the rest of the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import structlog

from gateways import ledger
from gateways.key_store import KeyGone
from gateways.ledger import Entry
from intake import needles, state_scopes
from jobs.letters import erase_letter
from jobs.resources import Resources
from models import accepting, work
from models import link as links
from models import receipt as receipts
from models import subject as subjects
from models.accepting import Fixed, Grown, Held, NothingThere
from models.database import Connection, driver
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


async def accept(resources: Resources, wish: Wish, erasure: UUID | None = None) -> tuple[UUID, list[Added]]:
    """Answers the erasure's id and the work to ring for. NothingThere when there is nothing of it, or not any more.

    The same `erasure` again, at whatever moment, is the same one.
    """
    closure = await _closure(resources, wish.space, wish.subject)
    named = await needles.find(resources, wish.space, closure) if closure else {}
    named |= await state_scopes.find(resources, wish.space, closure, wish.conversation)
    target = _target(wish, closure) | named
    entry = Entry(erasure or uuid4(), wish.space, wish.kind, target, wish.reason_code, wish.actor)
    await ledger.write(resources.keys, entry, await _handles(resources, wish.space, closure))
    try:
        added = await apply(resources, entry)
    except (NothingThere, Held):
        await ledger.withdraw(resources.keys, entry.id)
        raise
    return entry.id, added


async def apply(resources: Resources, entry: Entry) -> list[Added]:
    """Commits an entry to the data, destroys the keys, and marks it. Safe to repeat at any point."""
    await _remember_calls(resources, entry)
    try:
        added = await _commit(resources, entry)
    except Grown:
        return await apply(resources, await _widened(resources, entry))
    await _remember_calls(resources, entry)  # those that came in while it was committed
    await resources.keys.destroy([*entry.subjects(), *state_scopes.own_keys(entry)])
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
    await ledger.forget_calls(resources.keys)
    return added


async def replay(resources: Resources) -> int:
    """Erases again what a restored backup has brought back; answers how many erasures."""
    entries = await ledger.missing(resources.keys, resources.database)
    for entry in entries:
        await _commit(resources, entry, replaying=True)
        await resources.keys.destroy([*entry.subjects(), *state_scopes.own_keys(entry)])
    return len(entries)


async def _remember_calls(resources: Resources, entry: Entry) -> None:
    if entry.kind == "agent":
        return
    async with resources.database.begin(entry.space) as tx:
        told = entry.target.get("conversations", ())
        calls = await accepting.calls(await driver(tx), entry.space, entry.id, entry.subjects(), told)
    if calls:
        key = await ledger.suppression_key(resources.keys)
        named = [(ledger.call_digest(key, entry.space, digest), at) for digest, at in calls]
        await ledger.remember_calls(resources.keys, entry.id, named)


async def _closure(resources: Resources, space: int, subject: UUID | None) -> Sequence[UUID]:
    if subject is None:
        return ()
    async with resources.database.begin(space) as tx:
        return await subjects.closure(await driver(tx), space, subject)


async def _widened(resources: Resources, entry: Entry) -> Entry:
    """The entry with whoever is the same person by now."""
    people = {one for known in entry.subjects() for one in await _closure(resources, entry.space, known)}
    named = await needles.find(resources, entry.space, sorted(people))
    named |= await state_scopes.find(resources, entry.space, sorted(people), None)
    wider = replace(entry, target={**entry.target, **named, "subjects": sorted(one.hex for one in people)})
    await ledger.widen(resources.keys, wider, await _handles(resources, entry.space, sorted(people)))
    return wider


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


async def _commit(resources: Resources, entry: Entry, *, replaying: bool = False) -> list[Added]:
    # A batch of turns may hold what this needs, and wait for what this has: this one gives way, and tries again.
    for _ in range(_TRIES):
        try:
            return await _commit_once(resources, entry, replaying=replaying)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            continue
    return await _commit_once(resources, entry, replaying=replaying)


async def _commit_once(resources: Resources, entry: Entry, *, replaying: bool) -> list[Added]:
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await accepting.prepare(connection, entry.space)
        await accepting.lock(connection, entry.id)
        if await accepting.is_accepted(connection, entry.space, entry.id):
            return []
        lifted = await accepting.lift_holds(connection, entry.space, entry.target) if replaying else 0
        fixed = await accepting.fix(connection, entry.space, entry.target)
        if not replaying:
            await _check(connection, entry, fixed)
        aside = await needles.set_aside(connection, entry)
        await _raise_fence(connection, entry, fixed, {"holds": lifted, **aside})
        return await work.add_many(connection, [(erase_letter(entry.space, entry.id), None)])


async def _check(connection: Connection, entry: Entry, fixed: Fixed) -> None:
    if not fixed.found:
        raise NothingThere
    if await links.leads_out(connection, entry.space, entry.subjects()):
        raise Grown


async def _raise_fence(connection: Connection, entry: Entry, fixed: Fixed, besides: Mapping[str, int]) -> None:
    conversations, logs = tuple(fixed.target["conversations"]), tuple(fixed.target["logs"])
    # No log that stays tells of it.
    await retract(connection, Target(entry.space, logs=logs, conversations=conversations))
    counts = {**besides, "agent_states": await state_scopes.take_away(connection, entry, fixed.target)}
    counts |= await accepting.take_away(connection, entry.space, fixed)
    await accepting.record(connection, entry, fixed, counts)
    ids = {"erasure": str(entry.id), "subjects": [subjects.opaque(one) for one in map(UUID, fixed.target["subjects"])]}
    told = {name: rows for name, rows in counts.items() if rows}
    await receipts.write(connection, Receipt(entry.space, entry.actor, "erasure.accepted", ids, told))
