"""Turns as a data set: what a person said, and what was answered."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, ClassVar

from pydantic_core import from_json

from models.content import at_offset
from models.database import Connection
from models.dataset import LONG_AGO, Holds, Keys, Place, Row, Spot, Tables, Target
from models.hold import UNHELD, UNHELD_LOG
from models.rows import Rows, Way, number
from models.turn import SEALED_TURN


def _show(row: Any, keys: Keys) -> Row:
    # An export opens millions of them: the content is read as it lies, without a StoredTurn or a Turn of each, and
    # PostgreSQL writes the instants.
    key = keys.get(row["subject_id"])
    elsewhere = row["said_elsewhere"]
    content = _WITHHELD if key is None or row["unmasked"] else from_json(key.open(row["sealed"], SEALED_TURN))
    shown = {
        "conversation_id": row["conversation_id"],
        "id": row["id"],
        "log_id": row["log_id"],
        "name": content.get("name"),
        "number": row["seq"],
        "reason": row["reason"],
        "received_at": f"{row['received_at'][1:-1]}+00:00",
        "role": row["role"],
        "said_at": f"{row['said_at'][1:-1]}+00:00" if elsewhere is None else _local(elsewhere, row["said_offset"]),
        "state": row["state"],
        "text": content["text"],
        "tokens": row["tokens"],
        "tool_call_id": content.get("call"),
        "tool_calls": [dict(zip(_CALL, call, strict=True)) for call in content["calls"]] if "calls" in content else [],
    }
    if key is None:
        return {**shown, "withheld": "another person's conversation"}
    return {**shown, "withheld": "a model is still to look for names in it"} if row["unmasked"] else shown


def _local(said_at: datetime, offset: int) -> str:
    return at_offset(said_at, offset).isoformat()


_WITHHELD: dict[str, Any] = {"text": None}  # said in somebody else's conversation, under that person's key
_CALL = ("id", "name", "arguments")


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
        "call_digest": Holds.DIGEST,
    },
    ways=(Way("log_id", "logs", "seq"), Way("conversation_id", "conversations")),
    show=_show,
    order="log_id, seq",
    age="created_at",
    needs="""
        id, log_id, seq, conversation_id, subject_id, role, sealed, unmasked, tokens, state, reason, said_offset,
        CASE WHEN said_offset <> 0 THEN said_at END AS said_elsewhere, to_json(said_at AT TIME ZONE 'UTC') AS said_at,
        to_json(created_at AT TIME ZONE 'UTC') AS received_at
    """,
)

_LOGS = "SELECT log_id FROM turns WHERE space_id + 0 = $1 AND conversation_id = ANY ($2::bigint[]) LIMIT $3"
# Whoever writes turns locks their log first, so whoever deletes them does too.
_LOCK = "SELECT FROM logs WHERE space_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id FOR UPDATE"

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

# Numbers come as arrays: a row for each of them would cost as much as deleting them.
_PAST = f"""
SELECT array_agg(id) AS ids, array_agg(DISTINCT log_id) AS logs, max(created_at) AS at FROM (
    SELECT id, log_id, created_at FROM turns
    WHERE space_id = $1 AND created_at >= $2 AND created_at <= (SELECT horizon($1, 'turns')) AND {UNHELD} AND {UNHELD_LOG}
    ORDER BY created_at LIMIT $3) past
"""  # noqa: S608 - constants

_EXPIRED = """
WITH gone AS (
    DELETE FROM turns WHERE space_id = $1 AND id = ANY ($2::bigint[]) RETURNING id, log_id, state, tokens
), unheld AS (
    DELETE FROM quarantine WHERE space_id = $1 AND turn_id = ANY (ARRAY(SELECT id FROM gone))
), lost AS (
    SELECT log_id, count(*) AS turns, count(*) FILTER (WHERE state = 'pending') AS pending,
           coalesce(sum(tokens) FILTER (WHERE state = 'pending'), 0) AS tokens
    FROM gone GROUP BY log_id
), counted AS (
    UPDATE logs l SET expired_turns = l.expired_turns + lost.turns, pending_turns = l.pending_turns - lost.pending,
        pending_tokens = l.pending_tokens - lost.tokens,
        oldest_pending_at = CASE WHEN lost.pending = 0 THEN l.oldest_pending_at ELSE (
            SELECT t.created_at FROM turns t
            WHERE t.log_id = l.id AND t.state = 'pending' AND t.id <> ALL (ARRAY(SELECT id FROM gone))
            ORDER BY t.seq LIMIT 1) END
    FROM lost WHERE l.id = lost.log_id AND l.space_id = $1
)
SELECT count(*) FROM gone
"""

# A log's numbers are dense, so a stretch of them is a batch.
_STRETCH = "DELETE FROM turns WHERE space_id = $1 AND log_id = $2 AND seq > $3 AND seq <= $3 + $4::bigint"
_FURTHER = "SELECT min(seq) FROM turns WHERE space_id = $1 AND log_id = $2 AND seq > $3"


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
        logs = {row["log_id"] for row in await connection.fetch(_LOGS, *conversations)}
        if not logs:
            return 0
        await connection.execute(_LOCK, target.space, sorted(logs))
        return int(await connection.fetchval(_OF_CONVERSATIONS, *conversations))

    async def walk(self, connection: Connection, target: Target, place: Place, most: int) -> tuple[int, Place | None]:
        nth, after = place
        if nth >= len(target.logs):
            return 0, None
        stretch = (target.space, target.logs[nth], after, most)
        if gone := number(await connection.execute(_STRETCH, *stretch)):
            return gone, (nth, after + most)
        further = await connection.fetchval(_FURTHER, *stretch[:3])
        return 0, (nth + 1, 0) if further is None else (nth, further - 1)

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        return _ROWS.export(connection, target, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        return (await self.sweep(connection, space, None, most))[0]

    async def sweep(self, connection: Connection, space: int, spot: Spot | None, most: int) -> tuple[int, Spot | None]:
        past = await connection.fetchrow(_PAST, space, spot[1] if spot else LONG_AGO, most)
        if past["ids"] is None:
            return 0, None
        await connection.execute(_LOCK, space, past["logs"])
        gone = int(await connection.fetchval(_EXPIRED, space, past["ids"]))
        return gone, (0, past["at"]) if len(past["ids"]) == most else None


TURNS = TurnData()
