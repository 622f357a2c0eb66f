"""An erasure as the job that runs it sees it: where it stands, and how it moves on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from models.database import Connection
from models.dataset import Target

SET_ASIDE = "_set_aside"  # after a data set, in an erasure's counts: rows that name the person, for a reviewer


@dataclass(frozen=True, slots=True)
class Erasing:
    """One row of `erasures`. `counts` are rows deleted so far, by data set; `receipt` once the scan was clean."""

    id: UUID
    space: int
    kind: str
    target: Target
    reason_code: str
    actor: str
    state: str
    counts: Mapping[str, int]
    progress: Mapping[str, Any]
    unconfirmed: Any
    certificate: Mapping[str, Any] | None
    receipt: UUID | None
    accepted_at: datetime
    finished_at: datetime | None


_FIND = """
SELECT id, space_id, kind, target::text AS target, reason_code, actor, state, counts::text AS counts,
       progress::text AS progress, unconfirmed::text AS unconfirmed, certificate::text AS certificate, receipt,
       accepted_at, finished_at
FROM erasures WHERE space_id = $1 AND id = $2
"""


async def find(connection: Connection, space: int, erasure: UUID) -> Erasing | None:
    """An erasure of the space."""
    row = await connection.fetchrow(_FIND, space, erasure)
    if row is None:
        return None
    said = {
        name: json.loads(row[name] or "null") for name in ("target", "counts", "progress", "unconfirmed", "certificate")
    }
    return Erasing(
        id=row["id"],
        space=row["space_id"],
        kind=row["kind"],
        target=_target(row["space_id"], said["target"], row["accepted_at"]),
        reason_code=row["reason_code"],
        actor=row["actor"],
        state=row["state"],
        counts=said["counts"] or {},
        progress=said["progress"] or {},
        unconfirmed=said["unconfirmed"],
        certificate=said["certificate"],
        receipt=row["receipt"],
        accepted_at=row["accepted_at"],
        finished_at=row["finished_at"],
    )


def _target(space: int, said: Mapping[str, Any], accepted_at: datetime) -> Target:
    return Target(
        space,
        subjects=tuple(UUID(one) for one in said.get("subjects", ())),
        logs=tuple(said.get("logs", ())),
        conversations=tuple(said.get("conversations", ())),
        agent=said.get("agent"),
        before=accepted_at,
    )


async def move(connection: Connection, erasing: Erasing, state: str, progress: Mapping[str, Any]) -> None:
    """Says where it stands."""
    query = "UPDATE erasures SET state = $3, progress = $4::text::jsonb WHERE space_id = $1 AND id = $2"
    await connection.execute(query, erasing.space, erasing.id, state, json.dumps(dict(progress)))


async def count(connection: Connection, erasing: Erasing, data_set: str, rows: int) -> int:
    """Adds what a batch deleted; answers the data set's sum."""
    query = """
        UPDATE erasures SET state = 'running', progress = jsonb_build_object('data_set', $3::text),
            counts = counts || jsonb_build_object($3::text, coalesce((counts->>$3::text)::bigint, 0) + $4::bigint)
        WHERE space_id = $1 AND id = $2 RETURNING (counts->>$3::text)::bigint
    """
    return int(await connection.fetchval(query, erasing.space, erasing.id, data_set, rows))


async def prove(connection: Connection, erasing: Erasing, look: Mapping[str, Any], receipt: UUID) -> None:
    """Keeps what the clean scan saw, and the receipt that tells of it: what is missing is the receipt's seal."""
    query = """
        UPDATE erasures SET state = 'verifying', progress = $3::text::jsonb, receipt = $4
        WHERE space_id = $1 AND id = $2
    """
    await connection.execute(query, erasing.space, erasing.id, json.dumps({"scan": look}), receipt)


async def finish(connection: Connection, erasing: Erasing, certificate: Mapping[str, Any]) -> None:
    """It is completed, and this is the proof."""
    query = """
        UPDATE erasures SET state = 'completed', certificate = $3::text::jsonb, finished_at = clock_timestamp()
        WHERE space_id = $1 AND id = $2
    """
    await connection.execute(query, erasing.space, erasing.id, json.dumps(dict(certificate)))


async def reopen(connection: Connection, erasing: Erasing, found: Mapping[str, int]) -> None:
    """Something was found of what counted as erased: it is not completed, whatever its certificate says."""
    query = """
        UPDATE erasures SET state = 'incomplete', progress = $3::text::jsonb, receipt = NULL, certificate = NULL,
            finished_at = NULL
        WHERE space_id = $1 AND id = $2
    """
    await connection.execute(query, erasing.space, erasing.id, json.dumps({"found": dict(found)}))
