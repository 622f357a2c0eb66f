"""Retraction: conversations go from logs that stay, with every line that came of them.

Under a log's lock, in one transaction: whoever runs on the log loses the right to write; no turn of the conversations is
read for observing any more; every line whose evidence touches them is deleted, in every generation, and what was
rewritten from it; the other turns that such a line stood on are pending again, at the log's end.
"""

from models.database import Connection
from models.dataset import Target

_ALL_TURNS = 3600.0  # seconds: it passes over whatever somebody ever said

_LOGS = """
SELECT DISTINCT log_id FROM turns
WHERE space_id = $1 AND conversation_id = ANY ($2::bigint[]) AND log_id <> ALL ($3::bigint[]) ORDER BY log_id
"""

_ANY = """
SELECT EXISTS (
    SELECT FROM turns WHERE space_id = $1 AND conversation_id = ANY ($2::bigint[]) AND log_id <> ALL ($3::bigint[]))
"""

_LOCK = "SELECT true FROM logs WHERE space_id = $1 AND id = $2 FOR UPDATE"

# As if their workers had died: the work is taken up again, from what the log is then.
_END_CLAIMS = """
UPDATE work SET epoch = epoch + 1, claimed_until = now() - interval '1 second'
WHERE space_id = $1 AND scope = 'log:' || $2::bigint AND state = 'claimed'
"""

# What a model said about the turns, kept for work that is not done: a saving, and no more.
_UNSAID = """
DELETE FROM model_answers WHERE space_id = $1 AND subject_id = (SELECT subject_id FROM logs WHERE space_id = $1 AND id = $2)
"""

# Else an operator could send one of the turns back to be observed.
_NOT_SENT_BACK = """
DELETE FROM quarantine WHERE space_id = $1 AND log_id = $2 AND turn_id IN (
    SELECT id FROM turns WHERE space_id = $1 AND log_id = $2 AND conversation_id = ANY ($3::bigint[]))
"""

_UNREAD = """
WITH unread AS (
    UPDATE turns SET state = 'skipped', reason = 'erased'
    WHERE space_id = $1 AND log_id = $2 AND conversation_id = ANY ($3::bigint[]) AND state = 'pending' RETURNING tokens
)
UPDATE logs SET pending_turns = pending_turns - (SELECT count(*) FROM unread),
    pending_tokens = pending_tokens - (SELECT coalesce(sum(tokens), 0) FROM unread)
WHERE space_id = $1 AND id = $2
"""

_TOUCHED = """
WITH RECURSIVE said AS MATERIALIZED (
    SELECT array_agg(id) AS turns FROM turns
    WHERE space_id = $1 AND log_id = $2 AND conversation_id = ANY ($3::bigint[])
), touched AS (
    SELECT o.id FROM observations o CROSS JOIN said
    WHERE o.space_id = $1 AND o.log_id = $2 AND o.evidence && said.turns
    UNION
    SELECT o.id FROM touched t JOIN observations o ON t.id = ANY (o.sources) WHERE o.space_id = $1 AND o.log_id = $2
)
SELECT id FROM touched
"""

_DELETE = """
WITH corrections AS (
    UPDATE observations SET supersedes = NULL
    WHERE space_id = $1 AND log_id = $2 AND supersedes = ANY ($3::bigint[]) AND id <> ALL ($3)
)
DELETE FROM observations WHERE space_id = $1 AND log_id = $2 AND id = ANY ($3::bigint[]) RETURNING evidence
"""

_PENDING_AGAIN = """
WITH log AS (
    SELECT last_seq FROM logs WHERE space_id = $1 AND id = $2
), again AS (
    SELECT id, row_number() OVER (ORDER BY seq) AS nth FROM turns
    WHERE space_id = $1 AND log_id = $2 AND id = ANY ($3::bigint[]) AND conversation_id <> ALL ($4::bigint[])
      AND state = 'observed'
), moved AS (
    UPDATE turns t SET seq = log.last_seq + again.nth, state = 'pending', generation = NULL
    FROM again CROSS JOIN log WHERE t.id = again.id RETURNING t.tokens
)
UPDATE logs SET last_seq = last_seq + (SELECT count(*) FROM moved),
    pending_turns = pending_turns + (SELECT count(*) FROM moved),
    pending_tokens = pending_tokens + (SELECT coalesce(sum(tokens), 0) FROM moved)
WHERE space_id = $1 AND id = $2
"""

_RECKON = """
UPDATE logs l SET
    live_tokens = coalesce((SELECT sum(tokens) FROM observations o WHERE o.log_id = l.id AND o.generation = l.generation), 0),
    oldest_pending_at = (
        SELECT t.created_at FROM turns t WHERE t.log_id = l.id AND t.state = 'pending' ORDER BY t.seq LIMIT 1)
WHERE space_id = $1 AND id = $2
"""


async def elsewhere(connection: Connection, target: Target) -> list[int]:
    """The logs, not the target's own, in which turns of its conversations stand."""
    where = (target.space, list(target.conversations), list(target.logs))
    if not await connection.fetchval(_ANY, *where, timeout=_ALL_TURNS):  # which costs a third, and is the common case
        return []
    return [row["log_id"] for row in await connection.fetch(_LOGS, *where, timeout=_ALL_TURNS)]


async def retract(connection: Connection, target: Target) -> int:
    """Takes the target's conversations out of the logs that are not the target's own; answers how many lines went."""
    conversations = list(target.conversations)
    if not conversations:
        return 0
    logs = await elsewhere(connection, target)
    return sum([await _from_log(connection, target.space, log, conversations) for log in logs])


async def _from_log(connection: Connection, space: int, log: int, conversations: list[int]) -> int:
    if not await connection.fetchval(_LOCK, space, log):
        return 0
    for statement in (_END_CLAIMS, _UNSAID):
        await connection.execute(statement, space, log)
    for statement in (_NOT_SENT_BACK, _UNREAD):
        await connection.execute(statement, space, log, conversations)
    touched = [row["id"] for row in await connection.fetch(_TOUCHED, space, log, conversations)]
    if touched:
        gone = await connection.fetch(_DELETE, space, log, touched)
        turns = sorted({turn for row in gone for turn in row["evidence"]})
        await connection.execute(_PENDING_AGAIN, space, log, turns, conversations)
    await connection.execute(_RECKON, space, log)
    return len(touched)
