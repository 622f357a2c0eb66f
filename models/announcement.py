"""Announcements: what subscribers are to be told, written in the transaction that makes it true. Ids, never a text."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4, uuid5

from sqlalchemy import Column, Index, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection

_ONCE = UUID("6d0bd7f0-40bb-4f0f-8a55-3d0a3c4f4f5e")  # under which ids are made of what may be said once


class Event(StrEnum):
    """What can be subscribed to."""

    NOTE_CREATED = "note.created"
    PROPOSAL_CREATED = "proposal.created"
    PROPOSAL_DECIDED = "proposal.decided"
    EXPORT_READY = "export.ready"
    ERASURE_COMPLETED = "erasure.completed"
    TURN_QUARANTINED = "turn.quarantined"
    USAGE_CAPPED = "usage.capped"


class Announcement(SQLModel, table=True):
    """`id` is the webhook-id, the same at every delivery of it."""

    __tablename__ = "announcements"
    __table_args__ = (Index("announcements_in_order", "space_id", "created_at"),)

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    event: str
    ids: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    created_at: datetime = created()


async def announce(connection: Connection, space: int, event: Event, ids: Mapping[str, str | int]) -> UUID:
    """Writes it in the caller's transaction, which is bound to the space. Delivery is the webhook job's."""
    announcement = uuid4()
    await _write(connection, space, announcement, event, ids)
    return announcement


async def announce_once(connection: Connection, space: int, event: Event, ids: Mapping[str, str | int]) -> bool:
    """As `announce`, but the same ids are announced a single time, whoever comes with them; False: they were before."""
    named = json.dumps([space, event, dict(ids)], sort_keys=True)
    return await _write(connection, space, uuid5(_ONCE, named), event, ids)


async def _write(
    connection: Connection, space: int, announcement: UUID, event: Event, ids: Mapping[str, str | int]
) -> bool:
    done = await connection.execute(
        "INSERT INTO announcements (id, space_id, event, ids) VALUES ($1, $2, $3, $4::text::jsonb) ON CONFLICT DO NOTHING",
        *(announcement, space, event, json.dumps(dict(ids))),
    )
    if done != "INSERT 0 1":
        return False
    await connection.execute(
        "INSERT INTO deliveries (space_id, webhook_id, announcement_id)"
        " SELECT $1, id, $2 FROM webhooks WHERE space_id = $1 AND NOT disabled AND $3 = ANY (events)",
        *(space, announcement, str(event)),
    )
    return True
