"""Agent memory as it is taken out: each note with all its versions, each proposal, in a form for anybody."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from models import note, proposal
from models.database import Connection
from models.rows import instant

Place = tuple[datetime, UUID]
"""After which row a page begins."""

Page = tuple[list[dict[str, Any]], Place | None]

_AFTER = (
    "space_id = $1 AND ($2::timestamptz IS NULL OR (created_at, id) > ($2, $3::uuid)) ORDER BY created_at, id LIMIT $4"
)
_SAID = ("kind", "title", "body", "tags", "visibility")


async def counts(connection: Connection, space_id: int) -> dict[str, int]:
    """How much there is to take out."""
    row = await connection.fetchrow(
        "SELECT (SELECT count(*) FROM notes WHERE space_id = $1) AS notes,"
        " (SELECT count(*) FROM note_versions WHERE space_id = $1) AS versions,"
        " (SELECT count(*) FROM proposals WHERE space_id = $1) AS proposals",
        space_id,
    )
    return dict(row)


async def notes_after(connection: Connection, space_id: int, after: Place | None, most: int) -> Page:
    """The next notes, oldest first."""
    query = f"SELECT * FROM notes WHERE {_AFTER}"  # noqa: S608 - a constant
    rows = await connection.fetch(query, space_id, *(after or (None, None)), most)
    versions = await connection.fetch(
        "SELECT * FROM note_versions WHERE space_id = $1 AND note_id = ANY ($2::uuid[]) ORDER BY note_id, version",
        *(space_id, [row["id"] for row in rows]),
    )
    told: dict[UUID, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    for version in versions:
        told[version["note_id"]].append(version_told(version))
    return [note_told(row) | {"versions": told[row["id"]]} for row in rows], _last(rows)


async def proposals_after(connection: Connection, space_id: int, after: Place | None, most: int) -> Page:
    """The next proposals, oldest first."""
    query = f"SELECT * FROM proposals WHERE {_AFTER}"  # noqa: S608 - a constant
    rows = await connection.fetch(query, space_id, *(after or (None, None)), most)
    return [proposal_told(row) for row in rows], _last(rows)


def note_told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A note without its texts."""
    return {
        "type": "note",
        "id": note.opaque(row["id"]),
        "agent": row["agent"],
        "vendor": row["vendor"],
        "status": row["status"],
        "version": row["version"],
        "evidence": _evidence(row),
        "created_at": instant(row["created_at"]),
        "revised_at": instant(row["revised_at"]),
        "retired_at": instant(row["retired_at"]),
    }


def version_told(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a note said in one version."""
    said = {member: row[member] for member in ("version", *_SAID, "actor")}
    return said | {"at": instant(row["created_at"]), "retired_at": instant(row["retired_at"])}


def proposal_told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A proposal, whatever became of it."""
    return {
        "type": "proposal",
        "id": proposal.opaque(row["id"]),
        **{member: row[member] for member in ("origin", "agent", "vendor", "state", *_SAID)},
        "evidence": _evidence(row),
        "note": None if row["note_id"] is None else note.opaque(row["note_id"]),
        **{member: row[member] for member in ("note_version", "actor", "decided_by", "reason_code")},
        "created_at": instant(row["created_at"]),
        "decided_at": instant(row["decided_at"]),
    }


def _evidence(row: Mapping[str, Any]) -> dict[str, str] | None:
    if row["evidence"] is None:
        return None
    return {"kind": row["evidence_kind"], "id": f"evd_{row['evidence'].hex()}"}


def _last(rows: list[Any]) -> Place | None:
    return (rows[-1]["created_at"], rows[-1]["id"]) if rows else None
