"""Webhooks: endpoints that a space has named, and what each was told or is still to be told.

URL and secrets are sealed under the space's key, for a URL may hold a secret of its own.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from models.columns import created, identity, moment, space
from models.database import Connection

SEALED_URL, SEALED_SECRETS = "webhooks.url", "webhooks.secrets"
TRIED_FOR = timedelta(days=1)
_KEPT = timedelta(days=30)  # how long what was delivered can still be looked up


class Webhook(SQLModel, table=True):
    """`disabled`: its endpoint said that it is gone. `resume_at`: not before, for it failed."""

    __tablename__ = "webhooks"
    __table_args__ = (Index("webhooks_by_name", "space_id", "name", unique=True),)

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    name: str
    url: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    secrets: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    events: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    disabled: bool = Field(sa_column_kwargs={"server_default": text("false")})
    resume_at: datetime = created()
    created_at: datetime = created()


class Delivery(SQLModel, table=True):
    """`since` is when it was first due, or sent back by an operator; `due_at` when it is next; `error` a code."""

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'delivered', 'parked')", name="delivery_state"),
        Index("deliveries_waiting", "webhook_id", "id", postgresql_where=text("state = 'waiting'")),
        Index("deliveries_of_webhook", "webhook_id", "state", "id"),
        Index("deliveries_of_announcement", "announcement_id"),
    )

    id: int = identity()
    space_id: int = space()
    webhook_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    announcement_id: UUID = Field(sa_column=Column(Uuid, nullable=False))
    state: str = Field(sa_column=Column(Text, nullable=False, server_default="waiting"))
    attempts: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    error: str | None = None
    since: datetime = created()
    due_at: datetime = created()
    finished_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Due:
    """One delivery that is to be tried now, with what it says. `space_key` names the key that opens the rest."""

    delivery: int
    attempts: int
    announcement: UUID
    event: str
    ids: dict[str, Any]
    at: datetime
    url: bytes
    secrets: bytes
    space_key: UUID


async def put(connection: Connection, row: Webhook) -> bool:
    """Makes an endpoint or changes it, and enables it again. True when it is new."""
    return bool(
        await connection.fetchval(
            """
            INSERT INTO webhooks (id, space_id, name, url, secrets, events) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (space_id, name) DO UPDATE SET url = excluded.url, secrets = excluded.secrets,
                events = excluded.events, disabled = false, resume_at = now()
            RETURNING xmax = 0
            """,
            *(row.id, row.space_id, row.name, row.url, row.secrets, row.events),
        )
    )


async def sealed_secrets(connection: Connection, space_id: int, name: str) -> bytes | None:
    """The secrets of an endpoint, as they are kept; it is locked until the transaction ends. None: there is none."""
    found: bytes | None = await connection.fetchval(
        "SELECT secrets FROM webhooks WHERE space_id = $1 AND name = $2 FOR UPDATE", space_id, name
    )
    return found


async def remove(connection: Connection, space_id: int, name: str) -> bool:
    """Removes an endpoint and all its deliveries. False: there was none."""
    done = await connection.execute("DELETE FROM webhooks WHERE space_id = $1 AND name = $2", space_id, name)
    return bool(done == "DELETE 1")


_LISTED = """
SELECT w.name, w.url, w.events, w.disabled, w.created_at,
       count(*) FILTER (WHERE d.state = 'waiting') AS waiting,
       count(*) FILTER (WHERE d.state = 'delivered') AS delivered,
       count(*) FILTER (WHERE d.state = 'parked') AS parked,
       (array_agg(d.error ORDER BY d.id DESC) FILTER (WHERE d.error IS NOT NULL AND d.state <> 'delivered'))[1] AS error
FROM webhooks w LEFT JOIN deliveries d ON d.webhook_id = w.id
WHERE w.space_id = $1 AND ($2::text IS NULL OR w.name = $2) GROUP BY w.id ORDER BY w.name
"""


async def listed(connection: Connection, space_id: int, name: str | None = None) -> Sequence[Any]:
    """The space's endpoints, or the one of that name, with how many deliveries stand where."""
    rows: Sequence[Any] = await connection.fetch(_LISTED, space_id, name)
    return rows


_DELIVERIES = """
SELECT d.id, d.announcement_id, a.event, d.state, d.attempts, d.error, a.created_at, d.finished_at,
       CASE WHEN d.state = 'waiting' THEN greatest(d.due_at, w.resume_at) END AS due_at
FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id JOIN announcements a ON a.id = d.announcement_id
WHERE w.space_id = $1 AND w.name = $2 AND ($3::text IS NULL OR d.state = $3) AND ($4::bigint IS NULL OR d.id < $4)
ORDER BY d.id DESC LIMIT $5
"""


async def deliveries(
    connection: Connection, space_id: int, name: str, state: str | None, before: int | None, most: int
) -> Sequence[Any]:
    """What an endpoint was told or is still to be told, newest first."""
    rows: Sequence[Any] = await connection.fetch(_DELIVERIES, space_id, name, state, before, most)
    return rows


async def retry(connection: Connection, space_id: int, name: str, now: datetime) -> int:
    """What is parked is due again, for a day. Answers how many."""
    done = await connection.execute(
        """
        UPDATE deliveries d SET state = 'waiting', attempts = 0, since = $3, due_at = $3, finished_at = NULL
        FROM webhooks w WHERE w.id = d.webhook_id AND w.space_id = $1 AND w.name = $2
            AND NOT w.disabled AND d.state = 'parked'
        """,
        *(space_id, name, now),
    )
    await connection.execute(
        "UPDATE webhooks SET resume_at = $3 WHERE space_id = $1 AND name = $2", space_id, name, now
    )
    return int(done.split()[-1])


async def waiting(connection: Connection, now: datetime) -> Sequence[tuple[int, UUID]]:
    """Space and id of every endpoint to which something can be sent now, over all spaces."""
    rows = await connection.fetch(
        """
        SELECT space_id, id FROM webhooks w WHERE NOT disabled AND resume_at <= $1
            AND EXISTS (SELECT FROM deliveries d WHERE d.webhook_id = w.id AND d.state = 'waiting' AND d.due_at <= $1)
        """,
        now,
    )
    return [(row["space_id"], row["id"]) for row in rows]


_NEXT = """
SELECT d.id, d.attempts, a.id AS announcement, a.event, a.ids::text AS ids, a.created_at, w.url, w.secrets, s.lookup_key
FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id AND d.state = 'waiting' AND d.due_at <= $3
    JOIN announcements a ON a.id = d.announcement_id JOIN spaces s ON s.id = w.space_id
WHERE w.space_id = $1 AND w.id = $2 AND NOT w.disabled AND w.resume_at <= $3
ORDER BY d.id LIMIT 1
"""


async def next_due(connection: Connection, space_id: int, webhook: UUID, now: datetime) -> Due | None:
    """The oldest delivery of an endpoint that is due; None where nothing is to be sent now."""
    row = await connection.fetchrow(_NEXT, space_id, webhook, now)
    if row is None:
        return None
    return Due(
        delivery=row["id"],
        attempts=row["attempts"],
        announcement=row["announcement"],
        event=row["event"],
        ids=json.loads(row["ids"]),
        at=row["created_at"],
        url=row["url"],
        secrets=row["secrets"],
        space_key=row["lookup_key"],
    )


async def delivered(connection: Connection, space_id: int, webhook: UUID, delivery: int, now: datetime) -> None:
    """It has arrived; what arrived long ago is forgotten."""
    await connection.execute(
        """
        UPDATE deliveries SET state = 'delivered', attempts = attempts + 1, error = NULL, finished_at = $3
        WHERE space_id = $1 AND id = $2 AND state = 'waiting'
        """,
        *(space_id, delivery, now),
    )
    await connection.execute(
        """
        DELETE FROM deliveries
        WHERE space_id = $1 AND webhook_id = $2 AND state = 'delivered' AND finished_at < $3
        """,
        *(space_id, webhook, now - _KEPT),
    )


_FAILED = """
UPDATE deliveries SET attempts = attempts + 1, error = $3, due_at = $5,
    state = CASE WHEN since <= $4::timestamptz - $6::interval THEN 'parked' ELSE state END,
    finished_at = CASE WHEN since <= $4::timestamptz - $6::interval THEN $4::timestamptz END
WHERE space_id = $1 AND id = $2 AND state = 'waiting'
"""


async def failed(
    connection: Connection, space_id: int, delivery: int, error: str, now: datetime, due_at: datetime
) -> None:
    """It did not arrive: it waits, not before `due_at`, or is parked when a day has gone."""
    await connection.execute(_FAILED, space_id, delivery, error, now, due_at, TRIED_FOR)


async def pause(connection: Connection, space_id: int, webhook: UUID, until: datetime) -> None:
    """Nothing is sent to the endpoint until then."""
    await connection.execute(
        "UPDATE webhooks SET resume_at = $3 WHERE space_id = $1 AND id = $2", space_id, webhook, until
    )


async def disable(connection: Connection, space_id: int, webhook: UUID, error: str, now: datetime) -> None:
    """The endpoint is gone, as it said: nothing more is sent, and what waits is parked."""
    await connection.execute("UPDATE webhooks SET disabled = true WHERE space_id = $1 AND id = $2", space_id, webhook)
    await connection.execute(
        """
        UPDATE deliveries SET state = 'parked', error = $3, finished_at = $4
        WHERE space_id = $1 AND webhook_id = $2 AND state = 'waiting'
        """,
        *(space_id, webhook, error, now),
    )
