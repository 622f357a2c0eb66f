"""An erasure: what was accepted to be erased, by ids that were fixed then; no handle, and nothing that leads to one."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, moment, space

_STATES = "('accepted', 'running', 'verifying', 'completed', 'incomplete')"
_EMPTY = text("'{}'")


class Erasure(SQLModel, table=True):
    """`target` holds ids of subjects, logs and conversations; `counts` rows deleted, by data set; `receipt` the proof's.

    `unconfirmed` is how many links were not followed. `certificate` is there once it is completed.
    """

    __tablename__ = "erasures"
    __table_args__ = (
        CheckConstraint(f"state IN {_STATES}", name="erasure_state"),
        Index("erasures_in_order", "space_id", "accepted_at"),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    kind: str
    target: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    reason_code: str
    actor: str
    state: str = Field(default="accepted", sa_column=Column(Text, nullable=False, server_default="accepted"))
    progress: dict[str, Any] = Field(
        default_factory=dict, sa_column=Column(JSONB, nullable=False, server_default=_EMPTY)
    )
    counts: dict[str, int] = Field(default_factory=dict, sa_column=Column(JSONB, nullable=False, server_default=_EMPTY))
    unconfirmed: int = Field(default=0, sa_column=Column(JSONB, nullable=False, server_default=text("'0'")))
    certificate: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB(none_as_null=True)))
    receipt: UUID | None = Field(default=None, sa_column=Column(Uuid))
    accepted_at: datetime = created()
    finished_at: datetime | None = moment(nullable=True)
