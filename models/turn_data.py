"""Turns as a data set: what a person said, and what was answered."""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from models.content import at_offset, open_turn
from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import Rows, Way, instant
from models.turn import StoredTurn


def _show(row: Any, keys: Keys) -> Row:
    shown: dict[str, Any] = {
        "id": row["id"],
        "log_id": row["log_id"],
        "conversation_id": row["conversation_id"],
        "number": row["seq"],
        "role": row["role"],
        "said_at": at_offset(row["said_at"], row["said_offset"]).isoformat(),
        "received_at": instant(row["created_at"]),
        "tokens": row["tokens"],
        "state": row["state"],
        "reason": row["reason"],
    }
    key = keys.get(row["subject_id"])
    if key is None:  # said in somebody else's conversation, under that person's key
        return {**shown, "text": None, "withheld": "another person's conversation"}
    turn = open_turn(StoredTurn(**dict(row)), key)
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in turn.tool_calls]
    return {**shown, "text": turn.text, "name": turn.name, "tool_calls": calls, "tool_call_id": turn.tool_call_id}


_ROWS = Rows(
    name="turns",
    table="turns",
    columns={
        "role": Holds.CODE,
        "sealed": Holds.SEALED,
        "state": Holds.CODE,
        "reason": Holds.CODE,
        "message_digest": Holds.DIGEST,
        "task_digest": Holds.DIGEST,
    },
    ways=(Way("log_id", "logs", "seq"), Way("conversation_id", "conversations")),
    show=_show,
    order="log_id, seq",
    age="created_at",
)

# Whoever writes turns locks their log first, so whoever deletes them does too.
_LOCK = """
SELECT id FROM logs WHERE space_id = $1 AND id = ANY (ARRAY(
    SELECT log_id FROM turns WHERE space_id + 0 = $1 AND conversation_id = ANY ($2::bigint[]) LIMIT $3))
ORDER BY id FOR UPDATE
"""

# A log that stays counts on: what it has lost, and what still waits there.
_OF_CONVERSATIONS = """
WITH gone AS (
    DELETE FROM turns WHERE space_id = $1 AND ctid = ANY (ARRAY(
        SELECT ctid FROM turns WHERE space_id + 0 = $1 AND conversation_id = ANY ($2::bigint[]) LIMIT $3))
    RETURNING id, log_id, state, tokens
), lost AS (
    SELECT log_id, count(*) AS turns, count(*) FILTER (WHERE state = 'pending') AS pending,
           coalesce(sum(tokens) FILTER (WHERE state = 'pending'), 0) AS tokens
    FROM gone GROUP BY log_id
), counted AS (
    UPDATE logs l SET erased_turns = l.erased_turns + lost.turns, pending_turns = l.pending_turns - lost.pending,
        pending_tokens = l.pending_tokens - lost.tokens,
        oldest_pending_at = (
            SELECT t.created_at FROM turns t
            WHERE t.log_id = l.id AND t.state = 'pending' AND t.id <> ALL (ARRAY(SELECT id FROM gone))
            ORDER BY t.seq LIMIT 1)
    FROM lost WHERE l.id = lost.log_id AND l.space_id = $1
)
SELECT count(*) FROM gone
"""


class TurnData:
    """The turns of a person's logs and conversations. Those of a conversation in a log that stays are counted off."""

    name: ClassVar[str] = _ROWS.name
    tables: ClassVar[Tables] = _ROWS.tables

    async def count(self, connection: Connection, target: Target) -> int:
        return await _ROWS.count(connection, target)

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        of_logs = Target(target.space, logs=target.logs)
        if gone := await _ROWS.erase(connection, of_logs, most):
            return gone
        if not target.conversations:
            return 0
        conversations = (target.space, list(target.conversations), most)
        await connection.execute(_LOCK, *conversations)
        return int(await connection.fetchval(_OF_CONVERSATIONS, *conversations))

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        return _ROWS.export(connection, target, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        return await _ROWS.expire(connection, space, most)


TURNS = TurnData()
