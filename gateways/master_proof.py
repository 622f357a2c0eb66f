"""Is this the master key that the key store was begun with?

A proof is a constant under the master key. The first process that ever opens the store writes it; every later one must
be able to open it. A store may hold the proofs of several master keys, by fingerprint: rotation adds one.
"""

from uuid import UUID

import asyncpg

from config.settings import WrongSetting
from privacy import sealing
from privacy.sealing import Unreadable

_PROOF_ID = UUID(int=0)  # no person's key has it: those are random
_PROOF = b"this key store knows this key...".ljust(sealing.KEY_BYTES)
_LOCK = 0x4D737472  # "Mstr": two first starts come one after the other

_FOREIGN = "AFTERTURN_MASTER_KEY is not the key that the key store was begun with: put that one back"


class WrongMasterKey(WrongSetting):
    """The key store was begun with another master key. Nothing may be wrapped by this one."""


async def prove(pool: asyncpg.Pool, master: bytes) -> None:
    """Returns when `master` is one of the store's own, or its first. WrongMasterKey when it is not."""
    if await _is_proven(pool, master):
        return
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        if not await _is_proven(connection, master):
            await _begin(connection, master)


async def _is_proven(connection: "asyncpg.Connection | asyncpg.Pool", master: bytes) -> bool:
    proof = await connection.fetchval(
        "SELECT proof FROM master_keys WHERE fingerprint = $1", sealing.fingerprint(master)
    )
    return proof is not None and _opens(master, _PROOF_ID, proof)


async def _begin(connection: asyncpg.Connection, master: bytes) -> None:
    """Writes the first proof. A store that was filled before there were proofs is asked for one of its keys."""
    if await connection.fetchval("SELECT EXISTS (SELECT FROM master_keys)"):
        raise WrongMasterKey(_FOREIGN)
    some = await connection.fetchrow("SELECT id, wrapped FROM wrapped_keys LIMIT 1")
    if some is not None and not _opens(master, some["id"], some["wrapped"]):
        raise WrongMasterKey(_FOREIGN)
    await connection.execute(
        "INSERT INTO master_keys (fingerprint, proof) VALUES ($1, $2)",
        *(sealing.fingerprint(master), sealing.wrap(master, _PROOF_ID, _PROOF)),
    )


def _opens(master: bytes, key_id: UUID, wrapped: bytes) -> bool:
    try:
        sealing.unwrap(master, key_id, wrapped)
    except Unreadable:
        return False
    return True
