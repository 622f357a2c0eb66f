"""Are these the master keys that the key store knows?

A proof is a constant under a master key. The first process that ever opens the store writes one; every later process
must be able to open each that is there. A rotation adds the new key's, and takes the former one's away at its end.
"""

from collections.abc import Mapping
from uuid import UUID

import asyncpg

from config.settings import WrongSetting
from models.database import Connection
from privacy import sealing
from privacy.sealing import Unreadable

_PROOF_ID = UUID(int=0)  # no person's key has it: those are random
_PROOF = b"this key store knows this key...".ljust(sealing.KEY_BYTES)
_LOCK = 0x4D737472  # "Mstr": two first starts come one after the other

_FOREIGN = "AFTERTURN_MASTER_KEY is not the key that the key store was begun with: put that one back"
_NEITHER = "neither AFTERTURN_MASTER_KEY nor AFTERTURN_MASTER_KEY_PREVIOUS is the key store's own: put that one back"
_UNFINISHED = (
    "the key store is being re-wrapped by a new master key: AFTERTURN_MASTER_KEY takes the new one and"
    " AFTERTURN_MASTER_KEY_PREVIOUS the former one until `afterturn keys rotate-master` is through"
)


class WrongMasterKey(WrongSetting):
    """The key store knows another master key than this process. Nothing may be wrapped by this one's."""


async def prove(pool: asyncpg.Pool, newest: bytes, former: bytes | None = None) -> bytes:
    """The one of the two to wrap with: the newest that the store knows; of a store that is new, `newest`.

    WrongMasterKey when the store knows neither, or another one besides.
    """
    proofs = await _proofs(pool) or await _begun(pool, newest)
    candidates = [newest] if former is None else [newest, former]
    proven = [master for master in candidates if _is_proven(master, proofs)]
    if not proven:
        raise WrongMasterKey(_FOREIGN if former is None else _NEITHER)
    if len(proven) < len(proofs):
        raise WrongMasterKey(_UNFINISHED)
    return proven[0]


async def add(connection: Connection, master: bytes) -> None:
    """From now on the store knows this master key too."""
    await connection.execute(
        "INSERT INTO master_keys (fingerprint, proof) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        *(sealing.fingerprint(master), sealing.wrap(master, _PROOF_ID, _PROOF)),
    )


async def _proofs(connection: Connection) -> Mapping[bytes, bytes]:
    rows = await connection.fetch("SELECT fingerprint, proof FROM master_keys")
    return {row["fingerprint"]: row["proof"] for row in rows}


async def _begun(pool: asyncpg.Pool, master: bytes) -> Mapping[bytes, bytes]:
    """The proofs of a store that is begun with `master`, unless somebody was first."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM master_keys)"):
            await add(connection, master)
        return await _proofs(connection)


def _is_proven(master: bytes, proofs: Mapping[bytes, bytes]) -> bool:
    proof = proofs.get(sealing.fingerprint(master))
    try:
        return proof is not None and sealing.unwrap(master, _PROOF_ID, proof) == _PROOF
    except Unreadable:
        return False
