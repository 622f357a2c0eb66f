"""An erasure's one transaction: what it fixes, and what it takes away at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from models import hold, link
from models.database import Connection
from models.dataset import Target
from models.registry import DATA_SETS

_AT_ONCE = 5_000  # rows
_PATIENCE = "300ms"  # below PostgreSQL's own second: of two that wait for each other, the acceptance gives way


class NothingThere(Exception):
    """There is nothing of that name to erase, or not any more."""


class Held(Exception):
    """A hold forbids to delete anything of it."""


class Grown(Exception):
    """Somebody was confirmed to be the same person since it was looked who that is."""


class Entered(Protocol):
    """An entry of the ledger."""

    @property
    def id(self) -> UUID: ...

    @property
    def space(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def reason_code(self) -> str: ...

    @property
    def actor(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The target by ids, locked. `found`: there was something; `unconfirmed` links were listed and not followed."""

    target: dict[str, Any]
    found: bool
    unconfirmed: int = 0


async def prepare(connection: Connection, space: int) -> None:
    """Binds the transaction to the space; it sees expired rows, gives up on a lock soon, and no hold comes meanwhile."""
    await connection.execute(
        "SELECT set_config('afterturn.space', $1, true), set_config('afterturn.expired', 'seen', true),"
        " set_config('lock_timeout', $2, true)",
        *(str(space), _PATIENCE),
    )
    await hold.keep_still(connection, space, alone=False)


async def is_accepted(connection: Connection, space: int, erasure: UUID) -> bool:
    """Whether an earlier run has committed it."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM erasures WHERE space_id = $1 AND id = $2)", space, erasure
        )
    )


async def lock(connection: Connection, erasure: UUID) -> None:
    """Whoever commits the same erasure meanwhile comes before this transaction, or after it."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", erasure.hex)


async def lift_holds(connection: Connection, space: int, target: Mapping[str, Any]) -> int:
    """Ends holds that a backup brought back: when the erasure was accepted, none was in force."""
    lifted = await connection.execute(
        "DELETE FROM holds WHERE space_id = $1 AND named IN (SELECT named FROM holds WHERE space_id = $1"
        " AND (subject_id = ANY ($2::uuid[])"
        " OR subject_id IN (SELECT subject_id FROM conversations WHERE space_id = $1 AND id = ANY ($3::bigint[]))))",
        *(space, [UUID(one) for one in target.get("subjects", ())], list(target.get("conversations", ()))),
    )
    return _rows(lifted)


async def fix(connection: Connection, space: int, target: Mapping[str, Any]) -> Fixed:
    """Locks what the target names and lists what belongs to it. Locks go people, conversations, logs.

    Only what is there is named: a restored database gives the numbers of what it does not have to somebody else. Held
    where a hold forbids it.
    """
    people = [UUID(one) for one in target.get("subjects", ())]
    locked = await connection.fetch(
        "SELECT id FROM subjects WHERE space_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE", space, people
    )
    conversations = await connection.fetch(
        "SELECT id, subject_id, digest FROM conversations WHERE space_id = $1 AND (subject_id = ANY ($2::uuid[]) OR id = ANY ($3::bigint[]))"
        " ORDER BY id FOR UPDATE",
        *(space, people, list(target.get("conversations", ()))),
    )
    logs = await connection.fetch(
        "SELECT id FROM logs WHERE space_id = $1 AND subject_id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE",
        space,
        people,
    )
    owners = {row["subject_id"] for row in conversations}
    numbers = [[row["id"] for row in rows] for rows in (logs, conversations)]
    if await hold.held(connection, space, [*people, *owners]) or await hold.shares_turns(connection, space, *numbers):
        raise Held
    fixed = {
        "subjects": [one.hex for one in people],
        "owners": sorted(one.hex for one in owners),
        "logs": numbers[0],
        "conversations": numbers[1],
    }
    if conversations and not people:
        fixed["digest"] = conversations[0]["digest"].hex()  # under its owner's key: by it one of the same id is known
    if "agent" in target:
        fixed["agent"] = target["agent"]
    found = bool(locked or conversations or "agent" in target)
    return Fixed(fixed, found, await link.unconfirmed(connection, space, people))


_CALLS = """
WITH fixed AS (SELECT target FROM erasures WHERE space_id = $1 AND id = $2),
known AS (
    SELECT call_digest, created_at FROM turns WHERE call_digest IS NOT NULL AND created_at > now() - interval '24 hours'
    AND space_id = $1 AND log_id = ANY (ARRAY(
        SELECT id FROM logs WHERE space_id = $1 AND subject_id = ANY ($3::uuid[])
        UNION SELECT jsonb_array_elements_text(target -> 'logs')::bigint FROM fixed))
    UNION ALL
    SELECT call_digest, created_at FROM turns WHERE call_digest IS NOT NULL AND created_at > now() - interval '24 hours'
    AND space_id = $1 AND conversation_id = ANY (ARRAY(
        SELECT id FROM conversations WHERE space_id = $1 AND subject_id = ANY ($3::uuid[])
        UNION SELECT unnest($4::bigint[])
        UNION SELECT jsonb_array_elements_text(target -> 'conversations')::bigint FROM fixed))
)
SELECT call_digest, min(created_at) AS at FROM known GROUP BY call_digest
"""


async def calls(
    connection: Connection, space: int, erasure: UUID, people: Sequence[UUID], conversations: Sequence[int]
) -> list[tuple[bytes, datetime]]:
    """Idempotency keys of the last day by which something came of the people or in the conversations: digest, and first instant.

    Before the erasure is committed by what is theirs; after it, by what it has fixed.
    """
    rows = await connection.fetch(_CALLS, space, erasure, list(people), list(conversations))
    return [(row["call_digest"], row["at"]) for row in rows]


async def take_away(connection: Connection, space: int, fixed: Fixed) -> dict[str, int]:
    """Deletes what leads to the person: from the commit on no reader finds them and no writer can write for them."""
    people = [UUID(one) for one in fixed.target["subjects"]]
    logs, conversations = fixed.target["logs"], fixed.target["conversations"]
    await connection.execute(
        "UPDATE work SET state = CASE state WHEN 'ready' THEN 'cancelled' ELSE state END, cancel_requested = true,"
        " finished_at = CASE state WHEN 'ready' THEN clock_timestamp() END"
        " WHERE space_id = $1 AND state IN ('ready', 'claimed') AND scope = ANY ($2::text[])",
        *(space, [f"log:{log}" for log in logs]),
    )
    revoked = await connection.execute(
        "UPDATE api_keys SET revoked_at = now() WHERE space_id = $1 AND owner_subject = ANY ($2::uuid[])"
        " AND revoked_at IS NULL",
        *(space, people),
    )
    gone = {"keys_revoked": _rows(revoked)}
    for name, table, column, ids in (
        ("pseudonyms", "pseudonyms", "subject_id", people),
        ("names", "names", "subject_id", people),
        ("handles", "handles", "subject_id", people),
        ("conversations", "conversations", "id", conversations),
        ("logs", "logs", "id", logs),
        ("subjects", "subjects", "id", people),
    ):
        query = f"DELETE FROM {table} WHERE space_id = $1 AND {column} = ANY ($2)"  # noqa: S608 - constants
        gone[name] = _rows(await connection.execute(query, space, ids))
    if "agent" in fixed.target:
        gone |= await _of_agent(connection, Target(space, agent=fixed.target["agent"]))
    return gone


async def _of_agent(connection: Connection, target: Target) -> dict[str, int]:
    """What an agent has learned is little, so it goes at once: what it learns from now on is not among it."""
    gone = dict.fromkeys([data_set.name for data_set in DATA_SETS], 0)
    for data_set in DATA_SETS:
        while rows := await data_set.erase(connection, target, _AT_ONCE):
            gone[data_set.name] += rows
    return gone


async def record(connection: Connection, entry: Entered, fixed: Fixed, counts: Mapping[str, int]) -> None:
    """The erasure's row: the eraser goes by it."""
    await connection.execute(
        "INSERT INTO erasures (id, space_id, kind, target, reason_code, actor, counts, unconfirmed)"
        " VALUES ($1, $2, $3, $4::text::jsonb, $5, $6, $7::text::jsonb, $8::text::jsonb)",
        *(entry.id, entry.space, entry.kind, json.dumps(fixed.target), entry.reason_code, entry.actor),
        *(json.dumps({name: rows for name, rows in counts.items() if rows}), json.dumps(fixed.unconfirmed)),
    )


def _rows(tag: str) -> int:
    return int(tag.rsplit(" ", 1)[-1])
