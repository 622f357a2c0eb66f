"""Exports as a data set, with the packages that lie beside its rows."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.export_package import folder, opaque
from models.rows import Rows, Way, instant


def _show(row: Any, keys: Keys) -> Row:  # noqa: ARG001 - nothing of it is sealed
    return {
        "id": opaque(row["id"]),
        "state": row["state"],
        "asked_at": instant(row["created_at"]),
        "as_of": instant(row["as_of"]),
        "bytes": row["size"],
    }


_ROWS = Rows(
    name="exports",
    table="exports",
    columns={
        "asked": Holds.DIGEST,
        "actor": Holds.ID,
        "state": Holds.CODE,
        "file": Holds.ID,
        "counts": Holds.NUMBERS,
    },
    ways=(Way("subject_id", "subjects"),),
    show=_show,
    order="created_at, id",
)

# A package holds what was said in a conversation, and what came of it, in whosesoever log its turns are. It is served no
# more from here on; its own letter, which is due now, takes the file away.
_CANCEL = """
WITH told AS (
    SELECT DISTINCT l.subject_id FROM turns t JOIN logs l ON l.id = t.log_id
    WHERE t.space_id = $1 AND t.conversation_id = ANY ($2::bigint[])
), ended AS (
    UPDATE exports e SET state = 'cancelled', finished_at = coalesce(e.finished_at, clock_timestamp())
    WHERE e.id IN (SELECT x.id FROM exports x JOIN told ON told.subject_id = x.subject_id
                   WHERE x.space_id = $1 AND x.state IN ('accepted', 'running', 'ready') LIMIT $3)
    RETURNING e.id
), due AS (
    UPDATE work w SET run_at = now(), rung_at = NULL FROM ended
    WHERE w.kind = 'expire_export' AND w.state = 'ready' AND w.dedup = 'export:' || replace(ended.id::text, '-', '')
)
SELECT count(*) FROM ended
"""


class ExportData:
    """Erasing a person takes their exports; erasing a conversation ends those of everybody whose log holds its turns."""

    name: ClassVar[str] = _ROWS.name
    tables: ClassVar[Tables] = _ROWS.tables

    async def count(self, connection: Connection, target: Target) -> int:
        return await _ROWS.count(connection, target)

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        if gone := await _ROWS.erase(connection, target, most):
            return gone
        if not target.conversations:
            return 0
        return int(await connection.fetchval(_CANCEL, target.space, list(target.conversations), most))

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        return _ROWS.export(connection, target, keys)

    async def expire(self, connection: Connection, space: int, most: int) -> int:  # noqa: ARG002 - see below
        """Nothing: each package has a letter of its own that is due when its time is over, and takes its file away."""
        return 0

    def folders(self, target: Target) -> Sequence[str]:
        """Where every package of the target lies, also one that no row names."""
        return [folder(target.space, subject) for subject in target.subjects]


EXPORTS = ExportData()
