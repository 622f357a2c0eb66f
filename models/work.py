"""Work: what is due, who has claimed it, how often it was tried. Redis only rings; this table is the truth.

A row is inserted in the transaction that makes the work due, so it is the outbox as well. `epoch` grows with every
claim and fences out whoever held an earlier one. All times are the database's, so a worker's clock does not matter.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, identity, moment
from models.database import Connection

_READY, _CLAIMED = text("state = 'ready'"), text("state = 'claimed'")


class Work(SQLModel, table=True):
    """Ids and numbers only, never a text: hence no row-level security here, and nothing to erase."""

    __tablename__ = "work"
    __table_args__ = (
        CheckConstraint("state IN ('ready', 'claimed', 'done', 'dead', 'cancelled', 'merged')", name="work_state"),
        # Debounce: one ready row per key. What arrives while the work runs makes a new row, so no wake-up is lost.
        Index("work_ready_once", "kind", "dedup", unique=True, postgresql_where=_READY),
        Index("work_claimed_once", "scope", unique=True, postgresql_where=_CLAIMED),
        # Two predicates that say the same, so that a query can name the index that it means: the planner's numbers
        # about a queue are always old, and by them the two look alike.
        Index("work_due", "kind", "run_at", postgresql_where=text("state = 'ready' AND NOT cancel_requested")),
        Index("work_due_by_space", "kind", "space_id", "run_at", postgresql_where=_READY),
        Index("work_running", "kind", "space_id", postgresql_where=_CLAIMED),
        Index("work_finished", "finished_at", postgresql_where=text("finished_at IS NOT NULL")),
    )

    id: int = identity()
    kind: str
    queue_class: str
    space_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    scope: str
    dedup: str
    state: str = Field(sa_column=Column(Text, nullable=False, server_default="ready"))
    run_at: datetime = created()
    attempt: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    crashes: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    waits: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    epoch: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="0"))
    owner: str | None = None
    claimed_until: datetime | None = moment(nullable=True)
    rung_at: datetime | None = moment(nullable=True)
    cancel_requested: bool = Field(sa_column_kwargs={"server_default": text("false")})
    payload: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    progress: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default="{}"))
    last_error: str | None = None
    trace_parent: str | None = None
    created_at: datetime = created()
    finished_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Letter:
    """Work to be done, as its producer and its job both know it.

    `scope` names what only one job at a time may work on, `dedup` what makes two letters the same work; equal `dedup`
    means equal `scope`. `payload` holds ids and numbers.
    """

    kind: str
    queue_class: str
    space_id: int
    scope: str
    dedup: str
    payload: Mapping[str, int | float | str | None] = field(default_factory=dict)
    trace_parent: str | None = None


class Added(NamedTuple):
    """A ready row, new or pulled forward, for the bell: `epoch` makes an old bell stale, `due` says whether to ring."""

    id: int
    epoch: int
    run_at: datetime
    queue_class: str
    due: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A row while somebody holds it.

    `attempt` counts this run, those that failed and those that crashed; `crashes` the workers that died over it;
    `waits` the runs in a row that failed by `last_error`, whether or not that cost an attempt, since the work got on.
    """

    id: int
    epoch: int
    kind: str
    queue_class: str
    space_id: int
    scope: str
    attempt: int
    crashes: int
    waits: int
    payload: Mapping[str, Any]
    progress: Mapping[str, Any]
    trace_parent: str | None = None
    last_error: str | None = None


class Superseded(Exception):
    """The row is no longer held by this claim: whatever the transaction around has written must not be."""


# A row that was ready already and due as early is left as it is, but locked until the caller's commit: nobody claims
# it before what it announces can be read.
_ADD = """
INSERT INTO work (kind, queue_class, space_id, scope, dedup, payload, trace_parent, run_at, rung_at)
SELECT kind, queue_class, space_id, scope, dedup, payload::jsonb, trace_parent, coalesce(run_at, now()),
       CASE WHEN coalesce(run_at, now()) <= now() THEN now() END
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[])
    AS l (kind, queue_class, space_id, scope, dedup, payload, trace_parent, run_at)
ORDER BY kind, dedup
ON CONFLICT (kind, dedup) WHERE state = 'ready' DO UPDATE SET run_at = excluded.run_at, rung_at = excluded.rung_at
    WHERE work.run_at > excluded.run_at
RETURNING id, epoch, run_at, queue_class, run_at <= now() AS due
"""


async def add(connection: Connection, letter: Letter, run_at: datetime | None = None) -> Added | None:
    """Makes work due at `run_at` (None: now). None: the same work waits already and is due no later; nothing to ring."""
    added = await add_many(connection, [(letter, run_at)])
    return added[0] if added else None


async def add_many(connection: Connection, letters: Iterable[tuple[Letter, datetime | None]]) -> list[Added]:
    """As `add`, in one statement; answers those that are new or were pulled forward, in no given order."""
    rows = _earliest(letters)
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[]] * 8
    return [Added(*row) for row in await connection.fetch(_ADD, *columns)] if rows else []


def _earliest(letters: Iterable[tuple[Letter, datetime | None]]) -> list[tuple[Any, ...]]:
    # One statement must not touch a row twice: of equal work the earliest stays.
    latest_first = sorted(letters, key=lambda due: due[1] or _LONG_AGO, reverse=True)
    kept = {(letter.kind, letter.dedup): (letter, run_at) for letter, run_at in latest_first}
    return [_row(letter, run_at) for letter, run_at in kept.values()]


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _row(letter: Letter, run_at: datetime | None) -> tuple[Any, ...]:
    payload = json.dumps(dict(letter.payload))
    named = (letter.kind, letter.queue_class, letter.space_id, letter.scope, letter.dedup)
    return (*named, payload, letter.trace_parent, run_at)


_COMPLETE = """
UPDATE work SET state = 'done', finished_at = clock_timestamp()
WHERE id = $1 AND epoch = $2 AND state = 'claimed' RETURNING true
"""

_COMPLETE_MANY = """
UPDATE work w SET state = 'done', finished_at = clock_timestamp()
FROM unnest($1::bigint[], $2::bigint[]) AS c (id, epoch)
WHERE w.id = c.id AND w.epoch = c.epoch AND w.state = 'claimed'
RETURNING w.id
"""


async def complete(connection: Connection, claim: Claim) -> None:
    """Ends the work, in the transaction that writes its effects. Superseded: that transaction must roll back."""
    if not await connection.fetchval(_COMPLETE, claim.id, claim.epoch):
        raise Superseded


async def complete_many(connection: Connection, claims: Sequence[Claim]) -> None:
    """Ends all of it, or raises Superseded: the transaction around then rolls back."""
    if len(await complete_held(connection, claims)) < len(claims):
        raise Superseded


async def complete_held(connection: Connection, claims: Sequence[Claim]) -> set[int]:
    """Ends what is still held, of work that wrote nothing; answers the ids."""
    ids, epochs = [claim.id for claim in claims], [claim.epoch for claim in claims]
    return {row["id"] for row in await connection.fetch(_COMPLETE_MANY, ids, epochs)}


async def advance(connection: Connection, claim: Claim, progress: Mapping[str, int | float | str | None]) -> None:
    """Keeps how far the work has come (ids and numbers), in the transaction of that step. Superseded: roll back."""
    held = await connection.fetchval(
        "UPDATE work SET progress = $3::text::jsonb, waits = 0 WHERE id = $1 AND epoch = $2 AND state = 'claimed' RETURNING true",
        *(claim.id, claim.epoch, json.dumps(dict(progress))),
    )
    if not held:
        raise Superseded


async def cancel(connection: Connection, space: int, work_id: int) -> str | None:
    """Ends ready work, asks claimed work to stop. Answers its state then; None when there is nothing left to stop."""
    state: str | None = await connection.fetchval(
        """
        UPDATE work SET state = CASE state WHEN 'ready' THEN 'cancelled' ELSE state END,
            cancel_requested = true, finished_at = CASE state WHEN 'ready' THEN clock_timestamp() END
        WHERE id = $1 AND space_id = $2 AND state IN ('ready', 'claimed') RETURNING state
        """,
        *(work_id, space),
    )
    return state


async def revive(connection: Connection, space: int, work_id: int) -> Added | None:
    """Dead work is due again, as if it were new. None when it is not dead, or the same work waits already."""
    row = await connection.fetchrow(
        """
        UPDATE work d SET state = 'ready', attempt = 0, crashes = 0, waits = 0, run_at = now(), rung_at = now(), finished_at = NULL
        WHERE id = $1 AND space_id = $2 AND state = 'dead' AND NOT EXISTS (
            SELECT FROM work t WHERE t.kind = d.kind AND t.dedup = d.dedup AND t.state = 'ready')
        RETURNING id, epoch, run_at, queue_class, true AS due
        """,
        *(work_id, space),
    )
    return Added(*row) if row else None
