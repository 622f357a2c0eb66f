"""API keys as a data set: which keys a person owns. An erased owner's keys stay as revoked, and lead to nobody."""

from collections.abc import AsyncIterator
from typing import ClassVar

from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import instant, number

_NOBODY = "00000000-0000-0000-0000-000000000000"
_MINE = "space_id = $1 AND owner_subject = ANY ($2::uuid[])"

_ERASE = f"""
UPDATE api_keys SET owner_subject = '{_NOBODY}', name = '', revoked_at = coalesce(revoked_at, now())
WHERE id IN (SELECT id FROM api_keys WHERE {_MINE} LIMIT $3)
"""  # noqa: S608 - constants


class ApiKeyData:
    """A key's name may be its owner's, so it goes as well; the row stays, for receipts name it as an actor."""

    name: ClassVar[str] = "api_keys"
    tables: ClassVar[Tables] = {
        "api_keys": {
            "id": Holds.ID,
            "name": Holds.CODE,
            "secret_digest": Holds.DIGEST,
            "scopes": Holds.CODE,
            "agent": Holds.CODE,
            "vendor": Holds.CODE,
            "owner_kind": Holds.CODE,
        }
    }

    async def count(self, connection: Connection, target: Target) -> int:
        query = f"SELECT count(*) FROM api_keys WHERE {_MINE}"  # noqa: S608 - constants
        return int(await connection.fetchval(query, target.space, list(target.subjects)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        return number(await connection.execute(_ERASE, target.space, list(target.subjects), most))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        query = f"SELECT * FROM api_keys WHERE {_MINE} ORDER BY created_at, id"  # noqa: S608 - constants
        async for row in connection.cursor(query, target.space, list(target.subjects)):
            yield {
                "id": row["id"],
                "name": row["name"],
                "scopes": row["scopes"],
                "agent": row["agent"],
                "since": instant(row["created_at"]),
                "revoked_at": instant(row["revoked_at"]),
            }

    async def expire(self, connection: Connection, space: int, most: int) -> int:  # noqa: ARG002 - keys have no term
        return 0


API_KEYS = ApiKeyData()
