"""A package while it is written: a ZIP that is never held whole, sealed as it grows.

The standard library's zipfile writes to a stream that cannot be sought as well as any package for it, and what it
writes can be opened by every program: no dependency would add to that. Times are fixed and the order is given, so
that equal content makes an equal package.
"""

import hashlib
from dataclasses import dataclass
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from privacy.package_cipher import Sealer

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a ZIP can tell
_LEVEL = 1  # text shrinks to a third by it already; harder costs more than all else together
_MODE = 0o100644 << 16
_UNIX = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside the package, as it was written."""

    name: str
    size: int
    sha256: str


class Package:
    """What each method answers are the next bytes of the sealed file. The methods are for a thread: they do not wait."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer, self._stream = sealer, _Stream()
        self._zip = ZipFile(cast("IO[bytes]", self._stream), "w", ZIP_DEFLATED, allowZip64=True)
        self._open: IO[bytes] | None = None
        self._name, self._size, self._digest = "", 0, hashlib.sha256()
        self.parts: list[Part] = []

    @property
    def size(self) -> int:
        """Bytes of the ZIP so far."""
        return self._stream.size

    def begin(self, name: str) -> None:
        """The next file."""
        entry = ZipInfo(name, _EPOCH)
        entry.compress_type, entry.external_attr, entry.create_system = ZIP_DEFLATED, _MODE, _UNIX
        entry._compresslevel = _LEVEL  # type: ignore[attr-defined]  # noqa: SLF001 - public from Python 3.13 on
        self._open = self._zip.open(entry, "w", force_zip64=True)
        self._name, self._size, self._digest = name, 0, hashlib.sha256()

    def write(self, content: bytes) -> bytes:
        """More of the file that was begun."""
        assert self._open is not None  # noqa: S101 - begun before
        self._digest.update(content)
        self._size += len(content)
        self._open.write(content)
        return self._sealed()

    def end(self) -> Part:
        """The file is whole."""
        assert self._open is not None  # noqa: S101 - begun before
        self._open.close()
        self.parts.append(Part(self._name, self._size, self._digest.hexdigest()))
        return self.parts[-1]

    def put(self, name: str, content: str) -> bytes:
        """A small file at once."""
        self.begin(name)
        sealed = self.write(content.encode())
        self.end()
        return sealed

    def close(self) -> bytes:
        """The package's end."""
        self._zip.close()
        return self._sealed() + self._sealer.close()

    def _sealed(self) -> bytes:
        return self._sealer.seal(self._stream.taken())


class _Stream:
    """Where the ZIP is written to. It can neither be sought nor told, so zipfile writes every size after its content."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self.size = 0

    def write(self, content: bytes) -> int:
        self._waiting += content
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing is kept back."""

    def taken(self) -> bytes:
        taken, self._waiting = bytes(self._waiting), bytearray()
        return taken
