"""The erasure ledger, kept with the keys: a backup of the data can bring back neither a text nor a person.

An entry is written before anything is erased, and marked applied once the data database has committed it. One that is
applied and not to be found in the data says that the data are from before: nobody may be served until it is replayed.
HMACs of handles, and for a day those of idempotency keys, are what recognises somebody who was erased.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from gateways.key_store import KeyStore
from models.database import Connection, Database
from privacy.hashing import fold
from privacy.sealing import SealingKey

_SUPPRESSION_KEY = UUID("5e1ec7ed-0000-4000-8000-000000000001")  # one a deployment
_RECENT = 50  # entries: more than could be under way while a backup was taken
_REMEMBERED = "24 hours"  # how long an idempotency key is recognised
_COLUMNS = "id, space_id, kind, target::text AS target, reason_code, actor, accepted_at"


@dataclass(frozen=True, slots=True)
class Entry:
    """One erasure, by ids. `target` names subjects (hex), conversations (numbers) or an agent.

    Beside subjects it names the agent `notes` and `proposals` (hex) in which they were found.
    """

    id: UUID
    space: int
    kind: str
    target: Mapping[str, Any]
    reason_code: str
    actor: str
    accepted_at: datetime | None = None

    def subjects(self) -> list[UUID]:
        """Whom it names."""
        return [UUID(one) for one in self.target.get("subjects", ())]


async def write(keys: KeyStore, entry: Entry, handles: Sequence[bytes]) -> None:
    """Enters an erasure, and the HMACs of the handles that it ends. An entry that stands already stays as it is."""
    async with keys.pool.acquire() as connection, connection.transaction():
        at = await connection.fetchval(
            "INSERT INTO ledger (id, space_id, kind, target, reason_code, actor)"
            " VALUES ($1, $2, $3, $4::text::jsonb, $5, $6) ON CONFLICT (id) DO NOTHING RETURNING accepted_at",
            *(entry.id, entry.space, entry.kind, json.dumps(dict(entry.target)), entry.reason_code, entry.actor),
        )
        if at is not None:
            await _suppress(connection, entry.id, at, handles)


async def widen(keys: KeyStore, entry: Entry, handles: Sequence[bytes]) -> None:
    """Takes into an entry who was confirmed to be the same person before its data were committed."""
    async with keys.pool.acquire() as connection, connection.transaction():
        at = await connection.fetchval(
            "UPDATE ledger SET target = $2::text::jsonb WHERE id = $1 RETURNING accepted_at",
            *(entry.id, json.dumps(dict(entry.target))),
        )
        await _suppress(connection, entry.id, at, handles)


async def remember_calls(keys: KeyStore, erasure: UUID, calls: Sequence[tuple[bytes, datetime]]) -> None:
    """Keeps the HMACs of idempotency keys that came with what is erased, each for a day from its own instant."""
    await keys.pool.executemany(
        "INSERT INTO suppressed_calls (digest, erasure, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [(digest, erasure, at) for digest, at in calls],
    )


async def knows_call(keys: KeyStore, call: bytes, handles: Sequence[bytes]) -> bool:
    """Whether a call of that HMAC came in the last day from somebody, of one of those handles, who was erased since."""
    return bool(
        await keys.pool.fetchval(
            "SELECT EXISTS (SELECT FROM suppressed_calls c JOIN suppressed s USING (erasure)"  # noqa: S608 - a constant
            f" WHERE c.digest = $1 AND s.digest = ANY ($2::bytea[]) AND c.at > now() - interval '{_REMEMBERED}')",
            *(call, list(handles)),
        )
    )


async def ended_call(keys: KeyStore, call: bytes, erasure: UUID) -> bool:
    """Whether what a call of that HMAC brought in the last day went with that erasure."""
    query = f"""
        SELECT EXISTS (SELECT FROM suppressed_calls
            WHERE digest = $1 AND erasure = $2 AND at > now() - interval '{_REMEMBERED}')
    """  # noqa: S608 - a constant
    return bool(await keys.pool.fetchval(query, call, erasure))


async def forget_calls(keys: KeyStore) -> None:
    """Drops idempotency keys past their day."""
    await keys.pool.execute(f"DELETE FROM suppressed_calls WHERE at <= now() - interval '{_REMEMBERED}'")  # noqa: S608 - a constant


async def withdraw(keys: KeyStore, erasure: UUID) -> None:
    """Takes back an entry that found nothing to erase: somebody was first."""
    await keys.pool.execute("DELETE FROM ledger WHERE id = $1 AND applied_at IS NULL", erasure)


async def mark_applied(keys: KeyStore, erasure: UUID) -> None:
    """The data database has it."""
    await keys.pool.execute(
        "UPDATE ledger SET applied_at = clock_timestamp() WHERE id = $1 AND applied_at IS NULL", erasure
    )


async def unfinished(keys: KeyStore, older_than: float) -> list[Entry]:
    """Entries whose process went away between the ledger and the data, `older_than` seconds ago."""
    rows = await keys.pool.fetch(
        f"SELECT {_COLUMNS} FROM ledger WHERE applied_at IS NULL"  # noqa: S608 - a constant
        " AND accepted_at < clock_timestamp() - make_interval(secs => $1) ORDER BY position",
        older_than,
    )
    return [_entry(row) for row in rows]


async def missing(keys: KeyStore, database: Database) -> list[Entry]:
    """Applied entries that the data do not have, oldest first: the data are from a backup."""
    rows = await keys.pool.fetch(f"SELECT {_COLUMNS} FROM ledger WHERE applied_at IS NOT NULL ORDER BY position")  # noqa: S608 - a constant
    known = await _known(database, [row["id"] for row in rows])
    return [_entry(row) for row in rows if row["id"] not in known]


async def recent(keys: KeyStore) -> list[Entry]:
    """The entries that were applied last, newest first: a backup from before an erasure lacks one of them."""
    rows = await keys.pool.fetch(
        f"SELECT {_COLUMNS} FROM ledger WHERE applied_at IS NOT NULL ORDER BY applied_at DESC LIMIT {_RECENT}"  # noqa: S608 - constants
    )
    return [_entry(row) for row in rows]


async def is_ahead(database: Database, entries: Sequence[Entry]) -> bool:
    """Whether the data lack one of these applied entries."""
    return bool(entries) and len(await _known(database, [entry.id for entry in entries])) < len(entries)


async def reborn_at(keys: KeyStore, digest: bytes) -> datetime | None:
    """When a handle of that HMAC was erased last."""
    at: datetime | None = await keys.pool.fetchval("SELECT max(at) FROM suppressed WHERE digest = $1", digest)
    return at


async def suppression_key(keys: KeyStore) -> SealingKey:
    """The deployment's key for handles that were erased."""
    return await keys.key_of_deployment(_SUPPRESSION_KEY, "suppression")


def suppression_digest(key: SealingKey, space: int, kind: str, handle: str) -> bytes:
    """What the ledger keeps of a handle."""
    return key.digest(f"{space}\0{kind}\0{fold(kind, handle)}", "suppressed")


def call_digest(key: SealingKey, space: int, call: bytes) -> bytes:
    """What the ledger keeps of an idempotency key."""
    return key.digest(f"{space}\0{call.hex()}", "suppressed/call")


async def _suppress(connection: Connection, erasure: UUID, at: datetime, handles: Sequence[bytes]) -> None:
    await connection.executemany(
        "INSERT INTO suppressed (digest, erasure, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [(digest, erasure, at) for digest in handles],
    )


async def _known(database: Database, erasures: Sequence[UUID]) -> set[UUID]:
    async with database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        rows = await connection.fetch("SELECT id FROM erasures WHERE id = ANY ($1::uuid[])", list(erasures))
    return {row["id"] for row in rows}


def _entry(row: Any) -> Entry:
    return Entry(
        id=row["id"],
        space=row["space_id"],
        kind=row["kind"],
        target=json.loads(row["target"]),
        reason_code=row["reason_code"],
        actor=row["actor"],
        accepted_at=row["accepted_at"],
    )
