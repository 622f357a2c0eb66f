"""The deployment's signing key: Ed25519, made at first use, kept wrapped beside the persons' keys."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateways.key_store import KeyStore
from privacy import receipt_proof, sealing

_CURRENT = "SELECT id, wrapped FROM signing_keys WHERE retired_at IS NULL"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs documents. `public` are the 32 bytes that check what it signed."""

    id: UUID
    public: bytes
    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def key_id(self) -> str:
        """The key's id as signatures name it."""
        return f"sig_{self.id.hex}"

    def signature(self, document: Mapping[str, Any]) -> dict[str, str]:
        """Over the document's canonical bytes."""
        return receipt_proof.sign(document, self._key, self.key_id)

    def signed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document with its signature, as certificates and checkpoints are handed out."""
        return {
            "document": dict(document),
            "signature": self.signature(document),
            "public_key": b64encode(self.public).decode(),
        }


async def load(keys: KeyStore) -> Signer:
    """The current key; the first caller ever makes it, and of several at once one wins."""
    row = await keys.pool.fetchrow(_CURRENT)
    if row is None:
        await _begin(keys)
        row = await keys.pool.fetchrow(_CURRENT)
    return _signer(row["id"], sealing.unwrap(keys.master, row["id"], row["wrapped"]))


async def public_keys(keys: KeyStore) -> dict[str, bytes]:
    """Every key that ever signed, retired ones included: by its id as signatures name it."""
    rows = await keys.pool.fetch("SELECT id, public FROM signing_keys ORDER BY created_at, id")
    return {f"sig_{row['id'].hex}": row["public"] for row in rows}


async def _begin(keys: KeyStore) -> None:
    key_id, secret = uuid4(), Ed25519PrivateKey.generate().private_bytes_raw()
    await keys.pool.execute(
        "INSERT INTO signing_keys (id, wrapped, public) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        *(key_id, sealing.wrap(keys.master, key_id, secret), _signer(key_id, secret).public),
    )


def _signer(key_id: UUID, secret: bytes) -> Signer:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    return Signer(key_id, key.public_key().public_bytes_raw(), key)
