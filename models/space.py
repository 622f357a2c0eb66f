"""A space: a tenant. Every row belongs to exactly one, and no query is written without it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Column, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, identity
from models.database import Connection


class Space(SQLModel, table=True):
    """`lookup_key` names the key, in the key store, under which this space's handles and ids are hashed."""

    __tablename__ = "spaces"

    id: int = identity()
    name: str = Field(unique=True)
    lookup_key: UUID
    features: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    masking: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default=text("'{}'")))
    created_at: datetime = created()


async def named(connection: Connection, name: str) -> tuple[int, UUID] | None:
    """The id and lookup key of a space, by its name."""
    row = await connection.fetchrow("SELECT id, lookup_key FROM spaces WHERE name = $1", name)
    return None if row is None else (row["id"], row["lookup_key"])


async def make(connection: Connection, name: str, lookup_key: UUID) -> tuple[int, UUID]:
    """The space of that name, made with `lookup_key` unless somebody was first."""
    await connection.execute(
        "INSERT INTO spaces (name, lookup_key, features) VALUES ($1, $2, '{}') ON CONFLICT (name) DO NOTHING",
        name,
        lookup_key,
    )
    found = await named(connection, name)
    if found is None:
        raise LookupError("the space went away while it was made")
    return found


async def lookup_key(connection: Connection, space: int) -> UUID:
    """The key under which a space's people are looked up."""
    key: UUID = await connection.fetchval("SELECT lookup_key FROM spaces WHERE id = $1", space)
    return key


async def keeps_contexts(connection: Connection, space: int) -> bool:
    """Whether a space keeps each context's memory apart."""
    return bool(
        await connection.fetchval(
            "SELECT coalesce((features->>'contexts')::bool, false) FROM spaces WHERE id = $1", space
        )
    )
