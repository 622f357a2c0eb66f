"""Announcements: what subscribers are to be told, written in the transaction that makes it true. Ids, never a text."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Column, Index, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection


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
    await connection.execute(
        "INSERT INTO announcements (id, space_id, event, ids) VALUES ($1, $2, $3, $4::text::jsonb)",
        *(announcement, space, event, json.dumps(dict(ids))),
    )
    await connection.execute(
        "INSERT INTO deliveries (space_id, webhook_id, announcement_id)"
        " SELECT $1, id, $2 FROM webhooks WHERE space_id = $1 AND NOT disabled AND $3 = ANY (events)",
        *(space, announcement, str(event)),
    )
    return announcement
