"""A new master key for the deployment: every key of the store is wrapped anew, then the former one opens nothing there.

Each batch is a transaction of its own, so whoever is killed goes on where it stopped, and two at once share the work.
The processes that serve meanwhile know both master keys, and wait for a moment at the end alone.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

import asyncpg
import structlog

from gateways import master_proof
from gateways.key_store import KeyStore
from gateways.masters import Masters
from privacy import sealing

_BATCH = 500  # keys: some 20 ms
_PAUSE = 0.1  # seconds
_TABLES = ("signing_keys", "wrapped_keys")

_log = structlog.get_logger()

Told = Callable[[int], None]
"""Hears how many more keys are wrapped anew."""


class NothingToRotate(Exception):
    """There is no former master key to rotate from."""


async def waiting(keys: KeyStore) -> int:
    """How many keys are wrapped by the former master key; NothingToRotate where this process knows none."""
    former = _former(keys)
    counts = [
        await keys.pool.fetchval(f"SELECT count(*) FROM {table} WHERE master = $1", former)  # noqa: S608 - a constant
        for table in _TABLES
    ]
    return sum(counts)


async def rotate(keys: KeyStore, told: Told = lambda _: None) -> int:
    """Wraps every key by the newest master key and forgets the former one; answers how many it wrapped.

    Unreadable: one of them was wrapped by neither, so the former master key stays good.
    """
    former, wrapped = _former(keys), 0
    await master_proof.add(keys.pool, keys.masters.newest)
    for table in _TABLES:
        place: UUID | None = UUID(int=0)
        while place is not None:
            async with keys.pool.acquire() as connection, connection.transaction():
                place, count = await _rewrap(connection, keys.masters, table, former, place)
            wrapped += count
            told(count)
    while (late := await _retire(keys, former)) is None:  # noqa: ASYNC110 - another process's transaction rings no bell
        await asyncio.sleep(_PAUSE)  # somebody else, as an eraser, holds one of the last keys
    told(late)
    _log.info("master_key_rotated", keys=wrapped + late)
    return wrapped + late


def _former(keys: KeyStore) -> bytes:
    if keys.masters.former is None:
        raise NothingToRotate
    return sealing.fingerprint(keys.masters.former)


async def _rewrap(
    connection: asyncpg.Connection, masters: Masters, table: str, former: bytes, after: UUID
) -> tuple[UUID | None, int]:
    """The next keys of a table, and where they end; None after the last. What another transaction holds is left out."""
    rows = await connection.fetch(
        f"SELECT id, wrapped FROM {table} WHERE id > $1 AND master = $2 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED",  # noqa: S608 - a constant
        *(after, former, _BATCH),
    )
    if not rows:
        return None, 0
    ids = [row["id"] for row in rows]
    anew = [sealing.wrap(masters.newest, row["id"], masters.unwrap(row["id"], row["wrapped"])) for row in rows]
    await connection.execute(
        f"UPDATE {table} t SET wrapped = n.wrapped FROM unnest($1::uuid[], $2::bytea[]) AS n (id, wrapped)"  # noqa: S608 - a constant
        " WHERE t.id = n.id",
        *(ids, anew),
    )
    return ids[-1], len(ids)


async def _retire(keys: KeyStore, former: bytes) -> int | None:
    """Takes the former master key's proof away, and with it the last keys; None when one of those was held."""
    try:
        async with keys.pool.acquire() as connection, connection.transaction():
            # Whoever writes a key wrapped by it holds its proof until the commit, and from here on waits for ours.
            await connection.execute("SELECT FROM master_keys WHERE fingerprint = $1 FOR UPDATE", former)
            late = 0
            for table in _TABLES:
                place: UUID | None = UUID(int=0)
                while place is not None:
                    place, count = await _rewrap(connection, keys.masters, table, former, place)
                    late += count
            await connection.execute("DELETE FROM master_keys WHERE fingerprint = $1", former)
            return late
    except asyncpg.ForeignKeyViolationError:
        return None
