"""Appending turns: the hot path, in few statements of one transaction, written for asyncpg.

First every call's log is locked and its conversation found; then all turns go in at once, and each log counts what it
took. A turn whose message id its conversation has already is left out, also when two calls race.

Batches must never wait for each other in a ring: each locks its logs in the order of their ids, then makes new ones,
then makes new conversations, both in the order of their names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
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


class Address(NamedTuple):
    """Where a call's turns belong. `sealed_id` and `known_as`, its hash under the space's key, are kept where it is new."""

    log: LogName
    conversation: ConversationName
    sealed_id: Sealed
    known_as: bytes | None = None


class Rebirth(NamedTuple):
    """When an earlier conversation of the same id was erased, and by which erasure: what is from before is refused."""

    at: datetime
    erasure: UUID


@dataclass(frozen=True, slots=True)
class Place:
    """What stands at an address: the log, under its lock, and the conversation's id."""

    log: LockedLog
    conversation: int
    rebirth: Rebirth | None


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
    call_digest: bytes | None
    unmasked: bool


class TookTurns(NamedTuple):
    """What a log holds after an append."""

    log_id: int
    pending_turns: int
    pending_tokens: int
    oldest_pending_at: datetime | None


# The conversation's key is shared until the commit: an erasure that deletes it waits, and whoever comes later finds none.
# A plan made while the tables were empty must not read all of them later: LATERAL with OFFSET goes by the key for each
# call, and `+ 0` keeps locks and counts from going by the space.
_PLACES = """
WITH wanted AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::bytea[])
        WITH ORDINALITY AS w (owner, agent, context, speaker, digest, nth)
), found AS MATERIALIZED (
    SELECT w.nth, l.id AS log, c.id AS conversation, c.agent, c.reborn_at, c.reborn_by FROM wanted w
    LEFT JOIN LATERAL (
        SELECT id FROM logs l
        WHERE l.space_id = $1 AND l.subject_id = w.owner AND l.agent = w.agent AND l.context = w.context OFFSET 0
    ) l ON true
    LEFT JOIN LATERAL (
        SELECT id, agent, reborn_at, reborn_by FROM conversations c
        WHERE c.space_id = $1 AND c.subject_id = w.speaker AND c.digest = w.digest OFFSET 0 FOR KEY SHARE
    ) c ON true
), locked AS (
    SELECT id, last_seq, pending_turns, pending_tokens, oldest_pending_at FROM logs
    WHERE space_id + 0 = $1 AND id = ANY (ARRAY(SELECT log FROM found)) ORDER BY id FOR UPDATE
)
SELECT l.*, f.conversation, f.agent, f.reborn_at, f.reborn_by FROM found f LEFT JOIN locked l ON l.id = f.log ORDER BY f.nth
"""

_LOGS = """
SELECT subject_id, agent, context, id, last_seq, pending_turns, pending_tokens, oldest_pending_at FROM logs
WHERE space_id + 0 = $1 AND id = ANY (ARRAY(
    SELECT l.id FROM unnest($2::uuid[], $3::text[], $4::text[]) AS w (owner, agent, context) CROSS JOIN LATERAL (
        SELECT id FROM logs l
        WHERE l.space_id = $1 AND l.subject_id = w.owner AND l.agent = w.agent AND l.context = w.context OFFSET 0
    ) l
)) ORDER BY id FOR UPDATE
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

_NEW_CONVERSATIONS = """
INSERT INTO conversations (space_id, subject_id, digest, sealed_id, known_as, agent, reborn_at, reborn_by)
SELECT $1, subject_id, digest, sealed_id, known_as, agent, e.accepted_at, e.id
FROM unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
    AS w (subject_id, digest, sealed_id, known_as, agent)
LEFT JOIN LATERAL (
    SELECT id, accepted_at FROM erasures e
    WHERE e.space_id = $1 AND e.kind = 'conversation' AND e.target->>'digest' = encode(w.digest, 'hex')
    ORDER BY accepted_at DESC LIMIT 1
) e ON true
ORDER BY subject_id, digest
ON CONFLICT (space_id, subject_id, digest) DO NOTHING
"""

_APPEND = """
WITH offered AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::text[], $7::bytea[], $8::int[],
                         $9::timestamptz[], $10::smallint[], $11::text[], $12::text[], $13::bytea[], $14::bytea[], $15::bytea[],
                         $16::bool[])
        AS t (log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset, state, reason,
              message_digest, task_digest, call_digest, unmasked)
), added AS (
    INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                       state, reason, message_digest, task_digest, call_digest, unmasked)
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
    FROM took t WHERE l.id = t.log_id AND l.space_id + 0 = $1
    RETURNING l.id, l.pending_turns, l.pending_tokens, l.oldest_pending_at
)
SELECT a.log_id, a.seq, m.pending_turns, m.pending_tokens, m.oldest_pending_at
FROM added a JOIN moved m ON m.id = a.log_id
"""


async def places(connection: Connection, space: int, addresses: Sequence[Address]) -> list[Place | None]:
    """Each call's log and conversation, made where they are new. None: the conversation is another agent's.

    A subject that was erased meanwhile raises a foreign-key violation.
    """
    found = await _look(connection, space, addresses)
    while logs := _new_logs(addresses, found):
        await lock_logs(connection, space, logs)
        found = await _look(connection, space, addresses)
    while conversations := _new_conversations(addresses, found):
        await connection.execute(_NEW_CONVERSATIONS, space, *_columns(conversations))
        found = await _look(connection, space, addresses)
    return [
        Place(at.log, at.conversation, at.rebirth) if at.log and at.conversation and at.agent == to.log.agent else None
        for to, at in zip(addresses, found, strict=True)
    ]


def _new_logs(addresses: Sequence[Address], found: Sequence["_Found"]) -> list[LogName]:
    wanted = (
        to.log for to, at in zip(addresses, found, strict=True) if not at.log and at.agent in (None, to.log.agent)
    )
    return list(dict.fromkeys(wanted))


def _new_conversations(addresses: Sequence[Address], found: Sequence["_Found"]) -> list[tuple[object, ...]]:
    # Where two agents begin the same one at once, the first call's has it.
    new = {to.conversation: to for to, at in reversed([*zip(addresses, found, strict=True)]) if at.conversation is None}
    return [(*name, to.sealed_id, to.known_as, to.log.agent) for name, to in new.items()]


async def lock_logs(connection: Connection, space: int, wanted: Sequence[LogName]) -> dict[LogName, LockedLog]:
    """The logs of those names, locked, made where they are new."""
    await connection.execute(_NEW_LOGS, space, *_columns(wanted))
    rows = await connection.fetch(_LOGS, space, *_columns(wanted))
    return {LogName(*tuple(row)[:3]): LockedLog(*tuple(row)[3:]) for row in rows}


async def append(
    connection: Connection, space: int, rows: Sequence[TurnRow]
) -> tuple[set[tuple[int, int]], dict[int, TookTurns]]:
    """Adds the turns to logs that are locked. Answers which (log, seq) were new, and where each log stands now."""
    if not rows:
        return set(), {}
    added = await connection.fetch(_APPEND, space, *_columns(rows))
    logs = {row["log_id"]: TookTurns(row["log_id"], *tuple(row)[2:]) for row in added}
    return {(row["log_id"], row["seq"]) for row in added}, logs


class _Found(NamedTuple):
    """What a look at an address found. `agent` is the conversation's: it keeps the one that it began with."""

    log: LockedLog | None
    conversation: int | None
    agent: str | None
    rebirth: Rebirth | None


async def _look(connection: Connection, space: int, addresses: Sequence[Address]) -> list[_Found]:
    rows = await connection.fetch(_PLACES, space, *_columns([(*to.log, *to.conversation) for to in addresses]))
    logs = {row["id"]: LockedLog(*tuple(row)[:5]) for row in rows if row["id"] is not None}
    return [_Found(logs.get(row["id"]), row["conversation"], row["agent"], _rebirth(row)) for row in rows]


def _rebirth(row: Any) -> Rebirth | None:
    return None if row["reborn_at"] is None else Rebirth(row["reborn_at"], row["reborn_by"])


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    # unnest() takes one array a column
    return [list(column) for column in zip(*rows, strict=True)]
