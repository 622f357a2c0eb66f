"""An API key: a bearer secret of a space, kept as a hash, with scopes."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Column, LargeBinary, Text
from sqlmodel import Field, SQLModel

from models import agent as agents
from models.columns import created, moment, space
from models.database import Connection
from models.policy import RULES


class Scope(StrEnum):
    """What a key may do, named after what it opens."""

    TURNS_WRITE = "turns:write"
    MEMORY_READ = "memory:read"
    AGENT_MEMORY_READ = "agent_memory:read"
    AGENT_MEMORY_WRITE = "agent_memory:write"
    AGENT_MEMORY_REVIEW = "agent_memory:review"
    AGENT_STATE = "agent_state"
    FIELDS = "fields"
    PROFILES_READ = "profiles:read"
    PROFILES_WRITE = "profiles:write"
    NOTES = "notes"
    OPERATOR = "operator"
    SECURITY = "security"
    RECEIPTS_READ = "receipts:read"


class ApiKey(SQLModel, table=True):
    """`owner` is the subject whose memory the key writes by default: a person, or the key itself."""

    __tablename__ = "api_keys"

    id: str = Field(primary_key=True)
    space_id: int = space()
    name: str
    secret_digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False, unique=True))
    scopes: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    agent: str | None = None
    vendor: str | None = None
    owner_subject: UUID
    owner_kind: str
    admin: bool = False
    allow_impersonation: bool = False
    created_at: datetime = created()
    revoked_at: datetime | None = moment(nullable=True)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request's key proves: everything that authorisation needs, and no secret."""

    key_id: str
    space: int
    lookup_key: UUID
    scopes: frozenset[str]
    agent: str | None
    owner: UUID
    owner_kind: str
    impersonates: bool
    contexts: bool
    rules: str = ""  # of masking, as the space set them
    admin: bool = False
    vendor: str | None = None
    foreign: frozenset[str] = frozenset()  # agents that are registered for other vendors


_BY_DIGEST = f"""
SELECT k.id, k.space_id, s.lookup_key, k.scopes, k.agent, k.owner_subject, k.owner_kind,
       k.admin AND k.allow_impersonation AS impersonates, coalesce((s.features->>'contexts')::bool, false) AS contexts,
       {RULES} AS rules, k.admin, k.vendor
FROM api_keys k JOIN spaces s ON s.id = k.space_id
WHERE k.secret_digest = $1 AND k.revoked_at IS NULL
"""  # noqa: S608 - a constant


async def credential(connection: Connection, digest: bytes) -> Credential | None:
    """The credential of a secret's digest; None when there is none or it was revoked."""
    row = await connection.fetchrow(_BY_DIGEST, digest)
    if row is None:
        return None
    return Credential(
        key_id=row["id"],
        space=row["space_id"],
        lookup_key=row["lookup_key"],
        scopes=frozenset(row["scopes"]),
        agent=row["agent"],
        owner=row["owner_subject"],
        owner_kind=row["owner_kind"],
        impersonates=row["impersonates"],
        contexts=row["contexts"],
        rules=row["rules"],
        admin=row["admin"],
        vendor=row["vendor"],
        foreign=await _foreign(connection, row["space_id"], row["vendor"]),
    )


async def _foreign(connection: Connection, space: int, vendor: str | None) -> frozenset[str]:
    if vendor is None:
        return frozenset()
    async with connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(space))
        return await agents.of_others(connection, space, vendor)


async def mint(connection: Connection, key: ApiKey) -> None:
    """Stores a new key."""
    await connection.execute(
        """
        INSERT INTO api_keys (id, space_id, name, secret_digest, scopes, agent, vendor, owner_subject, owner_kind, admin,
                              allow_impersonation)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        """,
        *(key.id, key.space_id, key.name, key.secret_digest, key.scopes, key.agent, key.vendor),
        *(key.owner_subject, key.owner_kind, key.admin, key.allow_impersonation),
    )


async def lives(connection: Connection, space: int, key_id: str) -> bool:
    """Whether the space has that key and it is not revoked; nobody revokes it before the transaction ends."""
    return bool(
        await connection.fetchval(
            "SELECT true FROM api_keys WHERE space_id = $1 AND id = $2 AND revoked_at IS NULL FOR SHARE", space, key_id
        )
    )


async def lock_owner(connection: Connection, space: int, subject: UUID) -> bool:
    """Whether the subject is there; nobody erases it before the transaction, bound to the space, ends."""
    return bool(
        await connection.fetchval(
            "SELECT true FROM subjects WHERE space_id = $1 AND id = $2 FOR KEY SHARE", space, subject
        )
    )


async def revoke(connection: Connection, space: int, key_id: str) -> bool:
    """Ends a key; False when the space has no such living key."""
    done = await connection.execute(
        "UPDATE api_keys SET revoked_at = now() WHERE space_id = $1 AND id = $2 AND revoked_at IS NULL", space, key_id
    )
    return bool(done == "UPDATE 1")


_LISTED = """
SELECT id, name, scopes, agent, vendor, owner_kind, owner_subject, admin, allow_impersonation, created_at, revoked_at
FROM api_keys WHERE space_id = $1 AND ($2::timestamptz IS NULL OR (created_at, id) > ($2, $3::text))
ORDER BY created_at, id LIMIT $4
"""


async def listed(connection: Connection, space: int) -> list[dict[str, Any]]:
    """Every key of a space, oldest first, without its secret."""
    return [dict(row) for row in await connection.fetch(_LISTED, space, None, None, None)]


async def page(connection: Connection, space: int, after: str | None, most: int) -> list[dict[str, Any]] | None:
    """The keys after one, as `listed` has them; None where the space has no such key."""
    at = None
    if after is not None:
        at = await connection.fetchval("SELECT created_at FROM api_keys WHERE space_id = $1 AND id = $2", space, after)
        if at is None:
            return None
    return [dict(row) for row in await connection.fetch(_LISTED, space, at, after, most)]
