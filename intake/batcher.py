"""Group commit: calls that wait at the same moment share one transaction, one flush to disk.

A batch holds calls of one space. Each call is answered for itself: one that names another agent's conversation is
refused while the rest go in. When a batch fails as a whole, its calls are tried one by one.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import asyncpg

from jobs.bell import Bell
from jobs.letters import observe_letter, remask_letter
from models import append, work
from models.append import Address, LockedLog, Place, Rebirth, TookTurns, TurnRow
from models.database import Connection, Database
from models.log import Rhythm
from models.work import Added, Letter
from privacy.sealing import Sealed

_MOST_CALLS = 64  # in one batch
_MOST_TURNS = 2_000  # in one batch, unless a single call has more
# Every statement here goes by a key, whatever it is handed: a plan made for these very values would be the same one, and
# making it is a quarter of what a small batch costs PostgreSQL.
_BEGIN = "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan; "
_COMMITTERS = 3  # batches at once
_CROWD = 32  # calls of one space that wait for the same flush; more of them are worth another
_QUIET_TURNS = 2  # of the loop: one reads a request, the next one serves it


class OtherAgent(Exception):
    """The conversation is another agent's; the caller hears the same as for one that does not exist."""


class OwnerGone(Exception):
    """The person was erased between the look-up and the commit; looking up again starts a new lineage."""


class ToldBefore(Exception):
    """The conversation was erased once, and nobody has looked yet whether the call is from before."""

    def __init__(self, rebirth: Rebirth) -> None:
        super().__init__()
        self.rebirth = rebirth


class PreparedTurn(NamedTuple):
    """One turn, masked, counted and sealed: the end of a TurnRow."""

    role: str
    sealed: Sealed
    tokens: int
    said_at: datetime
    said_offset: int
    state: str
    reason: str | None
    message_digest: bytes | None
    task_digest: bytes | None
    call_digest: bytes | None = None
    unmasked: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One request's turns, ready to be written. They are from after `since`, whatever was erased until then."""

    space: int
    address: Address
    turns: Sequence[PreparedTurn]
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Took:
    """What became of a call. `pending_*` are its log's, after the commit."""

    accepted: int
    duplicates: int
    pending_turns: int
    pending_tokens: int
    oldest_pending_at: datetime | None


Waiting = tuple[Call, "asyncio.Future[Took]"]


@dataclass(slots=True)
class Batcher:
    """Collects calls and commits them, spaces in turn. Runs inside the task group that it is handed."""

    database: Database
    bell: Bell
    rhythm: Rhythm
    tasks: asyncio.TaskGroup
    _waiting: dict[int, deque[Waiting]] = field(default_factory=dict)
    _committing: int = 0

    async def submit(self, call: Call) -> Took:
        """Commits a call with whatever waits beside it. Raises OtherAgent, OwnerGone, ToldBefore, or what PostgreSQL said."""
        answer: asyncio.Future[Took] = asyncio.get_running_loop().create_future()
        crowd = self._waiting.setdefault(call.space, deque())
        crowd.append((call, answer))
        if self._committing < _COMMITTERS and self._are_many(len(crowd)):
            self._committing += 1
            self.tasks.create_task(self._commit_waiting())
        return await answer

    def _are_many(self, crowd: int) -> bool:
        # One commit at a time gathers the most calls into the next: a second is worth it for another space, or a crowd.
        return len(self._waiting) > self._committing or crowd >= _CROWD * self._committing

    async def _commit_waiting(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                if self._waiting:
                    await self._commit(self._next_batch())
        finally:
            self._committing -= 1

    async def _gather(self) -> None:
        """Lets in who is at the door: while the loop's turns still bring calls, they share a flush and its statements."""
        crowd = next(iter(self._waiting.values()))
        seen, quiet = 0, 0
        while quiet < _QUIET_TURNS and len(crowd) < _CROWD:
            seen, quiet = len(crowd), quiet + 1 if len(crowd) == seen else 0
            await asyncio.sleep(0)

    def _next_batch(self) -> list[Waiting]:
        space = next(iter(self._waiting))
        crowd = self._waiting.pop(space)
        batch = [crowd.popleft()]
        turns = len(batch[0][0].turns)
        while crowd and len(batch) < _MOST_CALLS and (turns := turns + len(crowd[0][0].turns)) <= _MOST_TURNS:
            batch.append(crowd.popleft())
        if crowd:
            self._waiting[space] = crowd
        return batch

    async def _commit(self, batch: list[Waiting]) -> None:
        calls = [call for call, _ in batch]
        try:
            outcomes, due = await self._write(calls)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is told to the callers, each for itself
            if len(batch) > 1:
                for one in batch:
                    await self._commit([one])
                return
            outcomes, due = [_explained(error)], []
        for (_, answer), outcome in zip(batch, outcomes, strict=True):
            _settle(answer, outcome)
        if due:
            self.tasks.create_task(self.bell.ring(due))  # the next batch does not wait for Redis

    async def _write(self, calls: Sequence[Call]) -> tuple[list[Took | Exception], list[Added]]:
        async with self.begin(calls[0].space) as connection:
            return await write(connection, calls, self.rhythm)

    @asynccontextmanager
    async def begin(self, space: int) -> AsyncIterator[Connection]:
        """A transaction that sees one space, begun in one round trip. What leaves it by an exception is rolled back."""
        async with self.database.pool.acquire() as connection:
            await connection.execute(_BEGIN + f"SELECT set_config('afterturn.space', '{space:d}', true)")
            yield connection
            await connection.execute("COMMIT")  # else the pool rolls back, before anybody else has the connection


async def write(
    connection: Connection, calls: Sequence[Call], rhythm: Rhythm
) -> tuple[list[Took | Exception], list[Added]]:
    """Writes calls of one space in the open transaction. Answers each call, and the work that became due."""
    space = calls[0].space
    places = await append.places(connection, space, [call.address for call in calls])
    for call, place in zip(calls, places, strict=True):
        _check(call, place)
    numbered = [_numbered(call, place) for call, place in zip(calls, places, strict=True)]
    added, now = await append.append(connection, space, [row for rows in numbered for row in rows])
    logs = {place.log.id: place.log for place in places if place is not None}
    unmasked = {row.log_id for rows in numbered for row in rows if row.unmasked}
    letters = _letters(space, (log for log in logs.values() if log.id not in unmasked), now, rhythm)
    letters += [(remask_letter(space, log_id), None) for log_id in unmasked]  # which makes observing due afterwards
    due = await work.add_many(connection, letters)
    return [_took(rows, place, added, now) for rows, place in zip(numbered, places, strict=True)], due


def _check(call: Call, place: Place | None) -> None:
    rebirth = None if place is None else place.rebirth
    if rebirth is not None and (call.since is None or call.since < rebirth.at):
        raise ToldBefore(rebirth)  # the calls beside it are tried again, each alone


def _numbered(call: Call, place: Place | None) -> list[TurnRow]:
    """The turns as rows that follow what their log has."""
    if place is None:
        return []
    first, speaker = place.log.last_seq + 1, call.address.conversation.subject
    place.log.last_seq += len(call.turns)
    return [
        TurnRow(place.log.id, seq, place.conversation, speaker, *turn) for seq, turn in enumerate(call.turns, first)
    ]


def _letters(
    space: int, before: Iterable[LockedLog], now: dict[int, TookTurns], rhythm: Rhythm
) -> list[tuple[Letter, datetime | None]]:
    """Work for the logs that began to wait, or crossed the threshold; the others have theirs already."""
    letters: list[tuple[Letter, datetime | None]] = []
    for log in before:
        took = now.get(log.id)
        if took is None or took.oldest_pending_at is None or took.pending_turns == log.pending_turns:
            continue
        crossed = log.pending_tokens <= rhythm.threshold < took.pending_tokens
        if crossed or log.pending_turns == 0:
            wait = rhythm.max_age * 0 if took.pending_tokens > rhythm.threshold else rhythm.max_age
            letters.append((observe_letter(space, log.id), took.oldest_pending_at + wait))
    return letters


def _took(
    rows: Sequence[TurnRow], place: Place | None, added: set[tuple[int, int]], now: dict[int, TookTurns]
) -> Took | OtherAgent:
    if place is None:
        return OtherAgent()
    accepted = sum((row.log_id, row.seq) in added for row in rows)
    stands = now.get(place.log.id) or place.log
    return Took(accepted, len(rows) - accepted, stands.pending_turns, stands.pending_tokens, stands.oldest_pending_at)


def _explained(error: Exception) -> Exception:
    return OwnerGone() if isinstance(error, asyncpg.ForeignKeyViolationError) else error


def _settle(answer: "asyncio.Future[Took]", outcome: Took | Exception) -> None:
    if answer.done():  # its caller went away; the turns are in all the same
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
