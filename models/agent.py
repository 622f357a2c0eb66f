"""Agents: which vendor's each is, and whom it belongs to. One that nobody registered is open to every key of its space."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection


class Agent(SQLModel, table=True):
    """`owner_subject` answers for it, `employee_subject` works with it; each None where nobody was named, or is erased."""

    __tablename__ = "agents"

    space_id: int = space(primary_key=True)
    agent: str = Field(primary_key=True)
    vendor: str
    owner_subject: UUID | None = None
    employee_subject: UUID | None = None
    created_at: datetime = created()


class Registered(NamedTuple):
    """An agent as it is registered."""

    vendor: str
    owner: UUID | None
    employee: UUID | None
    since: datetime


async def register(
    connection: Connection, space_id: int, agent: str, vendor: str, owner: UUID | None, employee: UUID | None
) -> Registered:
    """Sets the whole registration. Asyncpg's ForeignKeyViolationError where one of the people is gone."""
    query = """
        INSERT INTO agents (space_id, agent, vendor, owner_subject, employee_subject) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (space_id, agent) DO UPDATE SET vendor = excluded.vendor, owner_subject = excluded.owner_subject,
            employee_subject = excluded.employee_subject
        RETURNING vendor, owner_subject, employee_subject, created_at
    """
    return Registered(*await connection.fetchrow(query, space_id, agent, vendor, owner, employee))


async def find(connection: Connection, space_id: int, agent: str) -> Registered | None:
    """An agent's registration, where it has one."""
    query = "SELECT vendor, owner_subject, employee_subject, created_at FROM agents WHERE space_id = $1 AND agent = $2"
    row = await connection.fetchrow(query, space_id, agent)
    return None if row is None else Registered(*row)


async def vendor(connection: Connection, space_id: int, agent: str) -> str | None:
    """Whose an agent is, until the transaction ends; None where nobody has said."""
    query = "SELECT vendor FROM agents WHERE space_id = $1 AND agent = $2 FOR SHARE"
    said: str | None = await connection.fetchval(query, space_id, agent)
    return said


async def of_others(connection: Connection, space_id: int, vendor: str) -> frozenset[str]:
    """The agents that are registered for other vendors."""
    rows = await connection.fetch("SELECT agent FROM agents WHERE space_id = $1 AND vendor <> $2", space_id, vendor)
    return frozenset(row["agent"] for row in rows)


async def has_keys_of_others(connection: Connection, space_id: int, agent: str, vendor: str) -> bool:
    """Whether a living key is bound to the agent, and to another vendor."""
    query = """
        SELECT EXISTS (SELECT FROM api_keys
            WHERE space_id = $1 AND agent = $2 AND vendor <> $3 AND revoked_at IS NULL)
    """
    return bool(await connection.fetchval(query, space_id, agent, vendor))
