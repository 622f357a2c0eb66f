"""Setting agent notes and proposals aside, for a person to look at; and giving a note back."""

from collections.abc import Sequence
from uuid import UUID

from models import note_book
from models.database import Connection
from models.rows import number

_TEXTS = """
SELECT id, said FROM (
    SELECT note_id AS id, array_agg(v.title || E'\n' || v.body || E'\n' || array_to_string(v.tags, ' ')) AS said
    FROM note_versions v JOIN notes n ON n.id = v.note_id
    WHERE v.space_id = $1 AND note_id > $2 GROUP BY note_id
) t ORDER BY id LIMIT $3
"""
_PROPOSED = """
SELECT id, ARRAY[title || E'\n' || body || E'\n' || array_to_string(tags, ' ')] AS said FROM proposals
WHERE space_id = $1 AND id > $2 ORDER BY id LIMIT $3
"""
FIRST = UUID(int=0)


async def note_texts(connection: Connection, space_id: int, after: UUID, most: int) -> list[tuple[UUID, list[str]]]:
    """The next notes by id, each with all that it ever said."""
    return [(row["id"], row["said"]) for row in await connection.fetch(_TEXTS, space_id, after, most)]


async def proposal_texts(connection: Connection, space_id: int, after: UUID, most: int) -> list[tuple[UUID, list[str]]]:
    """The next proposals by id, each with what it says."""
    return [(row["id"], row["said"]) for row in await connection.fetch(_PROPOSED, space_id, after, most)]


async def set_aside(
    connection: Connection, space_id: int, notes: Sequence[UUID], proposals: Sequence[UUID]
) -> dict[str, int]:
    """No agent reads them any more, and no proposal of them is approved as it stands. Answers how many there were."""
    gone = await connection.execute(
        "UPDATE notes SET status = 'quarantined' WHERE space_id = $1 AND id = ANY ($2::uuid[])",
        *(space_id, list(notes)),
    )
    waiting = await connection.execute(
        "UPDATE proposals SET state = 'quarantined' WHERE space_id = $1 AND id = ANY ($2::uuid[])",
        *(space_id, list(proposals)),
    )
    await note_book.turn(connection, space_id)
    return {"notes": number(gone), "proposals": number(waiting)}


async def release(connection: Connection, space_id: int, note: UUID) -> bool:
    """A note that was set aside is again what it was; False where there is no such one."""
    found = await connection.fetchval(
        "UPDATE notes SET status = CASE WHEN retired_at IS NULL THEN 'active' ELSE 'retired' END"
        " WHERE space_id = $1 AND id = $2 AND status = 'quarantined' RETURNING id",
        *(space_id, note),
    )
    return found is not None
