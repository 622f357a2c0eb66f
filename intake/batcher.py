"""Group commit: calls that wait at the same moment share one transaction, one flush to disk.

A batch holds calls of one space. Each call is answered for itself: one that names another agent's conversation is
refused while the rest go in. When a batch fails as a whole, its calls are tried one by one.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg

from intake.identity import bind_space
from jobs.bell import Bell
from jobs.letters import observe_letter
from models import append, work
from models.append import ConversationName, FoundConversation, LockedLog, LogName, TookTurns, TurnRow
from models.database import Connection, Database
from models.log import Rhythm
from models.work import Added, Letter
from privacy.sealing import Sealed

_MOST_CALLS = 64  # in one batch
_MOST_TURNS = 2_000  # in one batch, unless a single call has more
_COMMITTERS = 3  # batches at once


class OtherAgent(Exception):
    """The conversation is another agent's; the caller hears the same as for one that does not exist."""


class OwnerGone(Exception):
    """The person was erased between the look-up and the commit; looking up again starts a new lineage."""


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """One turn, masked, counted and sealed."""

    role: str
    sealed: Sealed
    tokens: int
    said_at: datetime
    said_offset: int
    state: str
    reason: str | None
    message_digest: bytes | None
    task_digest: bytes | None


@dataclass(frozen=True, slots=True)
class Call:
    """One request's turns, ready to be written."""

    space: int
    log: LogName
    conversation: ConversationName
    sealed_id: Sealed
    turns: Sequence[PreparedTurn]


@dataclass(frozen=True, slots=True)
class Took:
    """What became of a call. `pending_*` are its log's, after the commit."""

    accepted: int
    duplicates: int
    pending_turns: int
    pending_tokens: int
    oldest_pending_at: datetime | None


@dataclass(slots=True)
class Batcher:
    """Collects calls and commits them. Runs inside the task group that it is handed."""

    database: Database
    bell: Bell
    rhythm: Rhythm
    tasks: asyncio.TaskGroup
    _waiting: deque[tuple[Call, "asyncio.Future[Took]"]] = field(default_factory=deque)
    _committing: int = 0

    async def submit(self, call: Call) -> Took:
        """Commits a call with whatever waits beside it. Raises OtherAgent, OwnerGone, or what PostgreSQL said."""
        answer: asyncio.Future[Took] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer))
        if self._committing < _COMMITTERS:
            self._committing += 1
            self.tasks.create_task(self._commit_waiting())
        return await answer

    async def _commit_waiting(self) -> None:
        try:
            while self._waiting:
                await self._commit(self._next_batch())
        finally:
            self._committing -= 1

    def _next_batch(self) -> list[tuple[Call, "asyncio.Future[Took]"]]:
        batch: list[tuple[Call, asyncio.Future[Took]]] = []
        turns = 0
        while self._waiting and len(batch) < _MOST_CALLS:
            call = self._waiting[0][0]
            if batch and (call.space != batch[0][0].space or turns + len(call.turns) > _MOST_TURNS):
                break
            turns += len(call.turns)
            batch.append(self._waiting.popleft())
        return batch

    async def _commit(self, batch: list[tuple[Call, "asyncio.Future[Took]"]]) -> None:
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
        await self.bell.ring(due)

    async def _write(self, calls: Sequence[Call]) -> tuple[list[Took | Exception], list[Added]]:
        async with self.database.pool.acquire() as connection, connection.transaction():
            return await write(connection, calls, self.rhythm)


async def write(
    connection: Connection, calls: Sequence[Call], rhythm: Rhythm
) -> tuple[list[Took | Exception], list[Added]]:
    """Writes calls of one space in the open transaction. Answers each call, and the work that became due."""
    space = calls[0].space
    await bind_space(connection, space)
    wanted = {call.conversation: (call.sealed_id, call.log.agent) for call in reversed(calls)}
    conversations = await append.find_conversations(connection, space, wanted)
    mine = [call for call in calls if conversations[call.conversation].agent == call.log.agent]
    logs = await append.lock_logs(connection, space, list({call.log: None for call in mine})) if mine else {}
    numbered = [_numbered(call, logs[call.log], conversations[call.conversation]) for call in mine]
    added, now = await append.append(connection, space, [row for rows in numbered for row in rows])
    due = await work.add_many(connection, _letters(space, logs.values(), now, rhythm))
    took = {id(call): _took(rows, logs[call.log], added, now) for call, rows in zip(mine, numbered, strict=True)}
    return [took.get(id(call), OtherAgent()) for call in calls], due


def _numbered(call: Call, log: LockedLog, conversation: FoundConversation) -> list[TurnRow]:
    first = log.last_seq + 1
    log.last_seq += len(call.turns)
    return [
        TurnRow(
            *(log.id, seq, conversation.id, call.conversation.subject, turn.role, turn.sealed, turn.tokens),
            *(turn.said_at, turn.said_offset, turn.state, turn.reason, turn.message_digest, turn.task_digest),
        )
        for seq, turn in enumerate(call.turns, first)
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


def _took(rows: Sequence[TurnRow], log: LockedLog, added: set[tuple[int, int]], now: dict[int, TookTurns]) -> Took:
    accepted = sum((row.log_id, row.seq) in added for row in rows)
    stands = now.get(log.id) or log
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
