"""Agent states as a data set: each state with its fields, by their declared names."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from models import state
from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.rows import instant, number
from models.state import SEALED_FIELD

_MINE = "space_id = $1 AND (subjects && $2::uuid[] OR conversation_id = ANY ($3::bigint[]))"
_UNHELD = "NOT s.subjects && ARRAY(SELECT h.subject_id FROM holds h WHERE h.space_id = $1)"

_FIELDS = f"""
    DELETE FROM state_fields WHERE ctid = ANY (ARRAY(
        SELECT f.ctid FROM state_fields f JOIN states s ON s.id = f.state_id
        WHERE f.space_id = $1 AND f.expires_at <= now() AND {_UNHELD} LIMIT $2))
"""  # noqa: S608 - constants
_STATES = f"""
    DELETE FROM states WHERE id = ANY (ARRAY(
        SELECT s.id FROM states s WHERE s.space_id = $1 AND s.expires_at <= now() AND {_UNHELD} LIMIT $2))
"""  # noqa: S608 - constants
# An offline write that is older than any state could be has nothing left to bring back.
_TOLD = """
    DELETE FROM erased_states WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM erased_states WHERE space_id = $1 AND erased_at <= now() - interval '2 years' LIMIT $2))
"""


class StateData:
    """The states about a person, by scope, by `subject`, or by a conversation that is theirs."""

    name: ClassVar[str] = "agent_states"
    tables: ClassVar[Tables] = {
        "states": {"scope_kind": Holds.CODE, "scope": Holds.DIGEST, "agent": Holds.CODE},
        "state_fields": {"field": Holds.CODE, "sealed": Holds.SEALED},
        "erased_states": {"scope": Holds.DIGEST},
    }

    async def count(self, connection: Connection, target: Target) -> int:
        """States, each with its fields."""
        return int(await connection.fetchval(f"SELECT count(*) FROM states WHERE {_MINE}", *_parts(target)))  # noqa: S608 - a constant

    async def erase(self, connection: Connection, target: Target, most: int) -> int:  # noqa: ARG002 - they went at once
        """All of them: what is about one person is little, and its erasure has deleted it already."""
        return await state.take_away(connection, target.space, target.subjects, target.conversations, ((), ()))

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        """Each state, its live fields opened."""
        query = f"SELECT * FROM states WHERE {_MINE} ORDER BY id"  # noqa: S608 - a constant
        for row in await connection.fetch(query, *_parts(target)):
            fields = await connection.fetch(
                "SELECT field, sealed, written_at FROM state_fields WHERE state_id = $1 ORDER BY field", row["id"]
            )
            yield _show(row, fields, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        """Deletes fields past their own term, then states past theirs; their terms stand in the object types."""
        for statement in (_FIELDS, _STATES, _TOLD):
            if gone := number(await connection.execute(statement, space, most)):
                return gone
        return 0


def _parts(target: Target) -> tuple[int, list[Any], list[int]]:
    return target.space, list(target.subjects), list(target.conversations)


def _show(row: Any, fields: Sequence[Any], keys: Keys) -> Row:
    key = keys.get(row["key_id"])
    return {
        "agent": row["agent"],
        "scope": row["scope_kind"],
        "version": row["version"],
        "fields": {
            one["field"]: None if key is None else json.loads(key.open(one["sealed"], SEALED_FIELD)) for one in fields
        },
        "began_at": instant(row["created_at"]),
        "written_at": instant(row["updated_at"]),
        "kept_until": instant(row["expires_at"]),
    }


STATES = StateData()
