"""Sealing: text about a person is at rest only under that person's own key.

AES-256-GCM with a random 96-bit nonce; the purpose is authenticated, so that a sealed handle cannot pass for a sealed
turn. A person's key is itself at rest only wrapped by the deployment's master key. Destroying the wrapped key makes
every copy of the text unreadable, wherever it lies.
"""

import hashlib
import hmac
import os
from typing import NewType
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Sealed = NewType("Sealed", bytes)
"""What `SealingKey.seal` gives: version byte, nonce, ciphertext with its tag. The only thing the sealed columns take."""

KEY_BYTES = 32
_VERSION = b"\x01"
_NONCE = 12
_FINGERPRINT = 4


class Unreadable(Exception):
    """Sealed bytes that this key does not open: another key's, another purpose's, or altered."""


class SealingKey:
    """One person's key (or one space's), in memory. `id` names the wrapped key in the key store."""

    __slots__ = ("_aead", "_digests", "_name", "id")

    def __init__(self, key_id: UUID, secret: bytes) -> None:
        self.id, self._name = key_id, key_id.bytes
        self._aead = AESGCM(secret)
        digests = hmac.digest(secret, b"afterturn/digest", hashlib.sha256)
        self._digests = hmac.new(digests, digestmod=hashlib.sha256)  # copied for each: the key is set up once

    def seal(self, text: str, purpose: str) -> Sealed:
        """`text` (no lone surrogates) under this key, for one purpose: the column's name."""
        nonce = os.urandom(_NONCE)
        return Sealed(_VERSION + nonce + self._aead.encrypt(nonce, text.encode(), self._bound(purpose)))

    def open(self, sealed: bytes, purpose: str) -> str:
        """The text; Unreadable when anything about it is not as it was sealed."""
        if sealed[:1] != _VERSION:
            raise Unreadable(purpose)
        nonce, body = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        try:
            return self._aead.decrypt(nonce, body, self._bound(purpose)).decode()
        except InvalidTag:
            raise Unreadable(purpose) from None

    def digest(self, text: str, purpose: str) -> bytes:
        """16 bytes that are equal for equal texts under this key, and tell nothing without it."""
        digest = self._digests.copy()
        digest.update(f"{purpose}\0{text}".encode())
        return digest.digest()[:16]

    def _bound(self, purpose: str) -> bytes:
        return self._name + purpose.encode()


def wrap(master: bytes, key_id: UUID, secret: bytes) -> bytes:
    """A key under the master key: version, the master's fingerprint (so that rotation knows it), nonce, ciphertext."""
    nonce = os.urandom(_NONCE)
    return _VERSION + fingerprint(master) + nonce + AESGCM(master).encrypt(nonce, secret, key_id.bytes)


def unwrap(master: bytes, key_id: UUID, wrapped: bytes) -> bytes:
    """The key; Unreadable when it was wrapped by another master key or for another id."""
    if not is_wrapped_by(master, wrapped):
        raise Unreadable("wrapped by another master key")
    nonce, body = wrapped[1 + _FINGERPRINT :][:_NONCE], wrapped[1 + _FINGERPRINT + _NONCE :]
    try:
        return AESGCM(master).decrypt(nonce, body, key_id.bytes)
    except InvalidTag:
        raise Unreadable("wrapped key") from None


def is_wrapped_by(master: bytes, wrapped: bytes) -> bool:
    """Whether a wrapped key says that it is this master key's."""
    return wrapped[: 1 + _FINGERPRINT] == _VERSION + fingerprint(master)


def fingerprint(master: bytes) -> bytes:
    """Four bytes that tell master keys apart, and nothing about them."""
    return hashlib.sha256(b"afterturn/master/" + master).digest()[:_FINGERPRINT]
