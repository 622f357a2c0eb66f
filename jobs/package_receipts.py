"""The receipts that name a person, as the package has them: what was done, when, by which key. With the proof once it is sealed."""

import json
from collections.abc import AsyncIterator

from models import receipt as receipts
from models import seal
from models import subject as subjects
from models.database import Connection
from models.dataset import Row, Target
from models.rows import instant

_NAMED = """
SELECT id, at, actor, action, ids::text AS ids, counts::text AS counts FROM receipts
WHERE space_id = $1 AND EXISTS (
    SELECT FROM jsonb_path_query(ids, '$.** ? (@.type() == "string")') AS said (id)
    WHERE said.id #>> '{}' = ANY ($2::text[]))
ORDER BY at, id
"""
_AT_ONCE = 500


async def receipts_of(connection: Connection, target: Target) -> AsyncIterator[Row]:
    """Oldest first."""
    named = [form for one in target.subjects for form in (subjects.opaque(one), one.hex, str(one))]
    async for row in connection.cursor(_NAMED, target.space, named, prefetch=_AT_ONCE):
        yield {
            "id": receipts.opaque(row["id"]),
            "at": instant(row["at"]),
            "actor": row["actor"],
            "action": row["action"],
            "ids": json.loads(row["ids"]),
            "counts": json.loads(row["counts"]),
            "proof": await seal.proof(connection, target.space, row["id"]),
        }
