"""Agents as a data set: whom they belong to. An erased owner's agents stay their vendor's, and lead to nobody."""

from collections.abc import AsyncIterator
from typing import ClassVar

from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import instant, number

_MINE = "space_id = $1 AND (owner_subject = ANY ($2::uuid[]) OR employee_subject = ANY ($2::uuid[]))"

_ERASE = f"""
UPDATE agents SET owner_subject = CASE WHEN owner_subject = ANY ($2::uuid[]) THEN NULL ELSE owner_subject END,
    employee_subject = CASE WHEN employee_subject = ANY ($2::uuid[]) THEN NULL ELSE employee_subject END
WHERE space_id = $1 AND agent IN (SELECT agent FROM agents WHERE {_MINE} LIMIT $3)
"""  # noqa: S608 - constants


class AgentData:
    """Erasing an agent leaves its registration: it says who may speak for it, and nothing that it learned."""

    name: ClassVar[str] = "agents"
    tables: ClassVar[Tables] = {"agents": {"agent": Holds.CODE, "vendor": Holds.CODE}}

    async def count(self, connection: Connection, target: Target) -> int:
        query = f"SELECT count(*) FROM agents WHERE {_MINE}"  # noqa: S608 - constants
        return int(await connection.fetchval(query, target.space, list(target.subjects)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        return number(await connection.execute(_ERASE, target.space, list(target.subjects), most))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        query = f"SELECT * FROM agents WHERE {_MINE} ORDER BY agent"  # noqa: S608 - constants
        async for row in connection.cursor(query, target.space, list(target.subjects)):
            yield {"agent": row["agent"], "vendor": row["vendor"], "since": instant(row["created_at"])}

    async def expire(self, connection: Connection, space: int, most: int) -> int:  # noqa: ARG002 - a registration has no term
        return 0


AGENTS = AgentData()
