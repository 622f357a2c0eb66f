"""The deployment's signing key: Ed25519, made at first use, kept wrapped beside the persons' keys.

There is one at a time. A new one takes over by a statement that both sign, so that whoever knows either can check what
the other signed; those that were retired stay for that, but for their secret halves.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateways.key_store import KeyStore
from gateways.masters import Wrap
from privacy import handover, receipt_proof

_CURRENT = "SELECT id, wrapped FROM signing_keys WHERE retired_at IS NULL"
_HANDOVERS = "SELECT handover::text FROM signing_keys WHERE handover IS NOT NULL ORDER BY number"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs documents. `public` are the 32 bytes that check what it signed; `handovers` led to it, oldest first."""

    id: UUID
    public: bytes
    handovers: tuple[Mapping[str, Any], ...]
    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def key_id(self) -> str:
        """The key's id as signatures name it."""
        return _named(self.id)

    def signature(self, document: Mapping[str, Any]) -> dict[str, str]:
        """Over the document's canonical bytes."""
        return receipt_proof.sign(document, self._key, self.key_id)

    def signed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document with its signature, as certificates and checkpoints are handed out."""
        return {
            "document": dict(document),
            "signature": self.signature(document),
            "public_key": b64encode(self.public).decode(),
            "handovers": list(self.handovers),
        }


async def load(keys: KeyStore) -> Signer:
    """The current key; the first caller ever makes it, and of several at once one wins."""
    row = await keys.pool.fetchrow(_CURRENT)
    if row is None:
        await _begin(keys)
        row = await keys.pool.fetchrow(_CURRENT)
    return _signer(row["id"], keys.masters.unwrap(row["id"], row["wrapped"]), await handovers(keys))


async def rotate(keys: KeyStore) -> Signer:
    """A new key takes over. Of several callers at once one makes it, and all get the same."""
    old, new_id = await load(keys), uuid4()
    secret = Ed25519PrivateKey.generate().private_bytes_raw()
    new = _signer(new_id, secret, ())

    async def take_over(wrap: Wrap) -> bool:
        async with keys.pool.acquire() as connection, connection.transaction():
            return await _take_over(connection, old, new, wrap(new_id, secret))

    if await keys.masters.wrapping(keys.pool, take_over):
        _log.info("signing_key_rotated", key=new.key_id)
    return await load(keys)


async def public_keys(keys: KeyStore) -> dict[str, bytes]:
    """Every key that ever signed, retired ones included: by its id as signatures name it."""
    rows = await keys.pool.fetch("SELECT id, public FROM signing_keys ORDER BY number")
    return {_named(row["id"]): row["public"] for row in rows}


async def handovers(keys: KeyStore) -> tuple[dict[str, Any], ...]:
    """How each key took over from the one before, oldest first: `document`, `by_old`, `by_new`."""
    return tuple(json.loads(row["handover"]) for row in await keys.pool.fetch(_HANDOVERS))


async def _begin(keys: KeyStore) -> None:
    key_id, secret = uuid4(), Ed25519PrivateKey.generate().private_bytes_raw()

    async def put(wrap: Wrap) -> None:
        await keys.pool.execute(
            "INSERT INTO signing_keys (id, wrapped, public) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            *(key_id, wrap(key_id, secret), _signer(key_id, secret, ()).public),
        )

    await keys.masters.wrapping(keys.pool, put)


async def _take_over(connection: asyncpg.Connection, old: Signer, new: Signer, wrapped: bytes) -> bool:
    """Retires the old key and stores the new one; False when another caller has retired it."""
    at = receipt_proof.moment(await connection.fetchval("SELECT clock_timestamp()"))
    retired = await connection.execute(
        "UPDATE signing_keys SET retired_at = now(), wrapped = '' WHERE id = $1 AND retired_at IS NULL", old.id
    )
    if retired != "UPDATE 1":
        return False
    await connection.execute(
        "INSERT INTO signing_keys (id, wrapped, public, handover) VALUES ($1, $2, $3, $4::text::jsonb)",
        *(new.id, wrapped, new.public, json.dumps(_handed_over(old, new, at))),
    )
    return True


def _handed_over(old: Signer, new: Signer, at: str) -> dict[str, Any]:
    said = handover.document((old.key_id, old.public), (new.key_id, new.public), at)
    return {"document": said, "by_old": old.signature(said), "by_new": new.signature(said)}


def _signer(key_id: UUID, secret: bytes, led: tuple[Mapping[str, Any], ...]) -> Signer:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    return Signer(key_id, key.public_key().public_bytes_raw(), led, key)


def _named(key_id: UUID) -> str:
    return f"sig_{key_id.hex}"
