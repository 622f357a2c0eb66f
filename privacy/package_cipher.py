"""A package at rest: sealed in chunks under its person's key, so that any size takes the memory of one chunk.

AES-256-GCM under a key of the package's own, which stands in its head, sealed under the person's key. A chunk's nonce
is its number and whether it is the last one: a chunk that is altered, left out, doubled or moved does not open, nor
does a package without its end. The person's key destroyed, every copy is unreadable.
"""

import base64
import struct
from collections.abc import Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privacy.sealing import Sealed, SealingKey, Unreadable

CHUNK = 256 * 1024  # bytes of a package in one chunk
_MAGIC = b"ATPK\x01"
_HEAD = struct.Struct(">5sH")  # what it is, and how long its sealed key is
_TAG = 16
_KEY_BITS = 256


class Truncated(Exception):
    """The package ends before its end."""


def _purpose(package: str) -> str:
    return f"package/{package}"


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


class Sealer:
    """Seals one package. What `seal` and `close` answer, in order, is the file."""

    def __init__(self, key: SealingKey, package: str) -> None:
        secret = AESGCM.generate_key(_KEY_BITS)
        sealed = key.seal(base64.b64encode(secret).decode(), _purpose(package))
        self._aead, self._number = AESGCM(secret), 0
        self._waiting = bytearray()
        self._head = _HEAD.pack(_MAGIC, len(sealed)) + sealed

    def seal(self, content: bytes) -> bytes:
        """Takes the next bytes of the package; answers as many whole chunks as there are now."""
        self._waiting += content
        sealed, self._head = [self._head], b""
        # The last chunk is only known at the end, so one whole chunk may wait.
        while len(self._waiting) > CHUNK:
            sealed.append(self._chunk(bytes(self._waiting[:CHUNK]), last=False))
            del self._waiting[:CHUNK]
        return b"".join(sealed)

    def close(self) -> bytes:
        """The file's end."""
        head, self._head = self._head, b""
        return head + self._chunk(bytes(self._waiting), last=True)

    def _chunk(self, content: bytes, *, last: bool) -> bytes:
        sealed = self._aead.encrypt(_nonce(self._number, last=last), content, None)
        self._number += 1
        return sealed


class Opener:
    """Opens one package. Unreadable: another key's or package's, or altered. Truncated: it has no end."""

    def __init__(self, key: SealingKey, package: str) -> None:
        self._key, self._package = key, package
        self._aead: AESGCM | None = None
        self._number = 0
        self._waiting = bytearray()

    def open(self, sealed: bytes) -> bytes:
        """Takes the next bytes of the file; answers what they open."""
        self._waiting += sealed
        return b"".join(self._opened()) if self._knows_key() else b""

    def close(self) -> bytes:
        """The last chunk."""
        if not self._knows_key() or len(self._waiting) < _TAG:
            raise Truncated
        try:
            return self._chunk(bytes(self._waiting), last=True)
        except Unreadable:
            raise Truncated from None  # what was to be the last chunk is none

    def _opened(self) -> Iterator[bytes]:
        while len(self._waiting) > CHUNK + _TAG:
            yield self._chunk(bytes(self._waiting[: CHUNK + _TAG]), last=False)
            del self._waiting[: CHUNK + _TAG]

    def _knows_key(self) -> bool:
        if self._aead is None and len(self._waiting) >= _HEAD.size:
            magic, length = _HEAD.unpack_from(self._waiting)
            if magic != _MAGIC:
                raise Unreadable("no package")
            if len(self._waiting) >= _HEAD.size + length:
                sealed = Sealed(bytes(self._waiting[_HEAD.size : _HEAD.size + length]))
                self._aead = AESGCM(base64.b64decode(self._key.open(sealed, _purpose(self._package))))
                del self._waiting[: _HEAD.size + length]
        return self._aead is not None

    def _chunk(self, sealed: bytes, *, last: bool) -> bytes:
        assert self._aead is not None  # noqa: S101 - no chunk is opened before the head was
        try:
            content = self._aead.decrypt(_nonce(self._number, last=last), sealed, None)
        except InvalidTag:
            raise Unreadable("package") from None
        self._number += 1
        return content
