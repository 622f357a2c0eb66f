"""Appending turns: the hot path, in two statements of one transaction, written for asyncpg.

First the logs are locked in the order of their ids (so that two batches never wait for each other in a ring) and the
conversations are found; then all turns go in at once, and each log counts what it took. A turn whose message id its
conversation has already is left out, also when two calls race.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from models.database import Connection
from privacy.sealing import Sealed


class LogName(NamedTuple):
    """What names a log within its space."""

    subject: UUID
    agent: str
    context: str


class ConversationName(NamedTuple):
    """What names a conversation within its space."""

    subject: UUID
    digest: bytes


@dataclass(slots=True)
class LockedLog:
    """A log under its lock. `pending_*` are as they stood before this append."""

    id: int
    last_seq: int
    pending_turns: int
    pending_tokens: int
    oldest_pending_at: datetime | None
    observed_through: int


@dataclass(frozen=True, slots=True)
class FoundConversation:
    id: int
    agent: str


class TurnRow(NamedTuple):
    """One turn, masked, counted and sealed, on its way into the table."""

    log_id: int
    seq: int
    conversation_id: int
    subject_id: UUID
    role: str
    sealed: Sealed
    tokens: int
    said_at: datetime
    said_offset: int
    state: str
    reason: str | None
    message_digest: bytes | None
    task_digest: bytes | None


class TookTurns(NamedTuple):
    """What a log holds after an append."""

    log_id: int
    pending_turns: int
    pending_tokens: int
    oldest_pending_at: datetime | None


_LOGS = """
SELECT l.id, l.subject_id, l.agent, l.context, l.last_seq, l.pending_turns, l.pending_tokens, l.oldest_pending_at,
       l.observed_through
FROM logs l JOIN unnest($2::uuid[], $3::text[], $4::text[]) AS w (subject_id, agent, context)
  ON l.subject_id = w.subject_id AND l.agent = w.agent AND l.context = w.context
WHERE l.space_id = $1 ORDER BY l.id FOR UPDATE OF l
"""

_NEW_LOGS = """
WITH made AS (
    INSERT INTO logs (space_id, subject_id, agent, context)
    SELECT $1, subject_id, agent, context FROM unnest($2::uuid[], $3::text[], $4::text[]) AS w (subject_id, agent, context)
    ORDER BY subject_id, agent, context
    ON CONFLICT (space_id, subject_id, agent, context) DO NOTHING
    RETURNING id, space_id
)
INSERT INTO generations (log_id, number, space_id, made_by) SELECT id, 1, space_id, 'observe' FROM made
"""

_CONVERSATIONS = """
SELECT c.id, c.subject_id, c.digest, c.agent
FROM conversations c JOIN unnest($2::uuid[], $3::bytea[]) AS w (subject_id, digest)
  ON c.subject_id = w.subject_id AND c.digest = w.digest
WHERE c.space_id = $1
"""

_NEW_CONVERSATIONS = """
INSERT INTO conversations (space_id, subject_id, digest, sealed_id, agent)
SELECT $1, subject_id, digest, sealed_id, agent
FROM unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::text[]) AS w (subject_id, digest, sealed_id, agent)
ORDER BY subject_id, digest
ON CONFLICT (space_id, subject_id, digest) DO NOTHING
"""

_APPEND = """
WITH offered AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::text[], $7::bytea[], $8::int[],
                         $9::timestamptz[], $10::smallint[], $11::text[], $12::text[], $13::bytea[], $14::bytea[])
        AS t (log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset, state, reason,
              message_digest, task_digest)
), added AS (
    INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                       state, reason, message_digest, task_digest)
    SELECT $1, o.* FROM offered o ORDER BY log_id, seq
    ON CONFLICT (conversation_id, message_digest) DO NOTHING
    RETURNING log_id, seq, tokens, state
), took AS (
    SELECT log_id, max(seq) AS seq, count(*) FILTER (WHERE state = 'pending') AS turns,
           coalesce(sum(tokens) FILTER (WHERE state = 'pending'), 0) AS tokens
    FROM added GROUP BY log_id
), moved AS (
    UPDATE logs l SET last_seq = t.seq, pending_turns = l.pending_turns + t.turns,
           pending_tokens = l.pending_tokens + t.tokens,
           oldest_pending_at = CASE WHEN t.turns > 0 THEN coalesce(l.oldest_pending_at, now()) ELSE l.oldest_pending_at END
    FROM took t WHERE l.id = t.log_id AND l.space_id = $1
    RETURNING l.id, l.pending_turns, l.pending_tokens, l.oldest_pending_at
)
SELECT a.log_id, a.seq, m.pending_turns, m.pending_tokens, m.oldest_pending_at
FROM added a JOIN moved m ON m.id = a.log_id
"""


async def lock_logs(connection: Connection, space: int, wanted: Sequence[LogName]) -> dict[LogName, LockedLog]:
    """Locks the logs, making those that are new. A subject that was erased meanwhile raises a foreign-key violation."""
    locked = await _lock_known(connection, space, wanted)
    missing = [name for name in wanted if name not in locked]
    if missing:
        await connection.execute(_NEW_LOGS, space, *_columns(missing))
        locked |= await _lock_known(connection, space, missing)
    return locked


async def find_conversations(
    connection: Connection, space: int, wanted: Mapping[ConversationName, tuple[Sealed, str]]
) -> dict[ConversationName, FoundConversation]:
    """The conversations, made where new with their sealed id and agent. An existing one keeps the agent that it has."""
    found = await _known_conversations(connection, space, list(wanted))
    missing = [name for name in wanted if name not in found]
    if missing:
        sealed, agents = [wanted[name][0] for name in missing], [wanted[name][1] for name in missing]
        await connection.execute(_NEW_CONVERSATIONS, space, *_columns(missing), sealed, agents)
        found |= await _known_conversations(connection, space, missing)
    return found


async def append(
    connection: Connection, space: int, rows: Sequence[TurnRow]
) -> tuple[set[tuple[int, int]], dict[int, TookTurns]]:
    """Adds the turns to logs that are locked. Answers which (log, seq) were new, and where each log stands now."""
    if not rows:
        return set(), {}
    added = await connection.fetch(_APPEND, space, *_columns(rows))
    logs = {row["log_id"]: TookTurns(row["log_id"], *tuple(row)[2:]) for row in added}
    return {(row["log_id"], row["seq"]) for row in added}, logs


async def _lock_known(connection: Connection, space: int, wanted: Sequence[LogName]) -> dict[LogName, LockedLog]:
    rows = await connection.fetch(_LOGS, space, *_columns(wanted))
    return {
        LogName(row["subject_id"], row["agent"], row["context"]): LockedLog(row["id"], *tuple(row)[4:]) for row in rows
    }


async def _known_conversations(
    connection: Connection, space: int, wanted: Sequence[ConversationName]
) -> dict[ConversationName, FoundConversation]:
    rows = await connection.fetch(_CONVERSATIONS, space, *_columns(wanted))
    return {
        ConversationName(row["subject_id"], row["digest"]): FoundConversation(row["id"], row["agent"]) for row in rows
    }


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    # unnest() takes one array a column
    return [list(column) for column in zip(*rows, strict=True)]
