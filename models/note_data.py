"""Agent memory as data sets: an agent's notes, their versions, its proposals, and what it has written within the hour.

None of it is about a person, so a person has none of it, but for the proposals that were distilled from what they said.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from models import note_book
from models.database import Connection
from models.dataset import Holds, Keys, Row, Tables, Target
from models.note_export import note_told, proposal_told, version_told
from models.rows import number

_SAID = {"title": Holds.TRADE, "body": Holds.TRADE, "tags": Holds.TRADE, "kind": Holds.CODE, "visibility": Holds.CODE}
_BY_AGENT = "agent = $2 AND created_at <= $4::timestamptz"
_EVER = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OfAgents:
    """One table. `mine` are its rows of an agent ($2) until an instant ($4); `born` a further condition by conversations ($3).

    `age` is the instant by which a row is past the term of `notes`.
    """

    name: str
    columns: Mapping[str, Holds]
    show: Callable[[Mapping[str, Any]], Row]
    mine: str = _BY_AGENT
    born: str = "cardinality($3::bigint[]) < 0"
    age: str | None = None

    @property
    def tables(self) -> Tables:
        return {self.name: self.columns}

    async def count(self, connection: Connection, target: Target) -> int:
        """Rows that the agent, or the conversations, have."""
        query = f"SELECT count(*) FROM {self.name} WHERE {self._whose()}"  # noqa: S608 - names from this code alone
        return int(await connection.fetchval(query, *_parts(target)))

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        """Deletes up to `most` of them; no block that was made of them holds any more."""
        some = f"SELECT ctid FROM {self.name} WHERE {self._whose()} LIMIT $5"  # noqa: S608 - as above
        query = f"DELETE FROM {self.name} WHERE space_id = $1 AND ctid = ANY (ARRAY({some}))"  # noqa: S608 - as above
        gone = number(await connection.execute(query, *_parts(target), most))
        if gone:
            await note_book.turn(connection, target.space)
        return gone

    async def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:  # noqa: ARG002 - nothing of it is sealed
        """Each row, oldest first."""
        query = f"SELECT * FROM {self.name} WHERE {self._whose()} ORDER BY 1, 2, 3"  # noqa: S608 - as above
        async for row in connection.cursor(query, *_parts(target)):
            yield self.show(row)

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        """Deletes up to `most` rows that are past the term."""
        if self.age is None:
            return 0
        query = f"""
            DELETE FROM {self.name} WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {self.name} WHERE space_id = $1 AND {self.age} <= (SELECT horizon($1, 'notes')) LIMIT $2))
        """  # noqa: S608 - as above
        return number(await connection.execute(query, space, most))

    def _whose(self) -> str:
        return f"space_id = $1 AND ({self.mine} OR {self.born})"


def _parts(target: Target) -> tuple[Any, ...]:
    return target.space, target.agent, list(target.conversations), target.before or _EVER


def _spent(row: Mapping[str, Any]) -> Row:
    return {"whose": row["whose"], "what": row["what"], "within_the_hour": len(row["spent"])}


NOTE_VERSIONS = OfAgents(
    name="note_versions",
    columns={**_SAID, "search": Holds.TRADE, "actor": Holds.ID},
    show=version_told,
    mine="note_id IN (SELECT id FROM notes WHERE space_id = $1 AND agent = $2 AND created_at <= $4::timestamptz)",
    age="retired_at",
)
NOTES = OfAgents(
    name="notes",
    columns={
        "agent": Holds.CODE,
        "vendor": Holds.CODE,
        "status": Holds.CODE,
        "digest": Holds.DIGEST,
        "evidence_kind": Holds.CODE,
        "evidence": Holds.DIGEST,
    },
    show=note_told,
    age="retired_at",
)
PROPOSALS = OfAgents(
    name="proposals",
    columns={
        **_SAID,
        **dict.fromkeys(("origin", "agent", "vendor", "state", "evidence_kind", "reason_code"), Holds.CODE),
        **dict.fromkeys(("digest", "evidence", "proposer"), Holds.DIGEST),
        **dict.fromkeys(("actor", "decided_by"), Holds.ID),
    },
    show=proposal_told,
    born="conversation_id = ANY ($3::bigint[])",
    age="coalesce(decided_at, created_at + interval '30 days')",  # so long it waits for somebody
)
NOTE_ALLOWANCES = OfAgents(
    name="note_allowances",
    columns={"whose": Holds.ID, "what": Holds.CODE, "spent": Holds.NUMBERS},
    show=_spent,
    mine="whose = $2 AND what = 'writes' AND $4::timestamptz >= ALL (spent)",
)
