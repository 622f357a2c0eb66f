"""Where packages lie: a local folder, or a bucket of an S3-compatible store. Both keep sealed bytes and know no key.

A name is `folder/…/file`. A file is written whole or not at all; whoever's process dies over one leaves pieces that
`files` lists and `remove` takes away, in a bucket as well: it is written as numbered objects, not as one upload in
parts, which a dead writer would leave behind unseen.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from config.package_place import BucketPlace, FolderPlace

if TYPE_CHECKING:
    from obstore.store import S3Store

_READ = 1024 * 1024  # bytes at once
_SEGMENT = 8 * 1024 * 1024  # bytes of one object
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_PART = ".part"


class Missing(Exception):
    """There is no such file, or not all of it."""


class Writer(Protocol):
    """Takes a file's bytes, in order."""

    async def write(self, content: bytes) -> None: ...


class PackageStore(Protocol):
    """Both kinds answer the same calls."""

    def writing(self, name: str) -> Any:
        """`async with store.writing(name) as writer`: a file that is there once the block ended well, and not before."""
        ...

    def read(self, name: str) -> AsyncIterator[bytes]:
        """A file's bytes. Missing when there is none."""
        ...

    async def files(self, folder: str) -> list[str]:
        """The names of all that lies in a folder, at any depth, pieces of unfinished files included."""
        ...

    async def remove(self, name: str) -> None:
        """Removes a file, or a folder and all in it. What is not there is removed already."""
        ...


def open_store(place: FolderPlace | BucketPlace) -> PackageStore:
    """The store of a place. Nothing is asked of it yet."""
    if isinstance(place, FolderPlace):
        return Folder(place.path)
    return Bucket(_bucket(place), f"{place.prefix}/" if place.prefix else "")


@dataclass(frozen=True, slots=True)
class Folder:
    """A local folder that all processes share. Files and folders are the owner's alone."""

    root: Path

    @asynccontextmanager
    async def writing(self, name: str) -> AsyncIterator[Writer]:
        path = self._path(name)
        part = path.with_name(path.name + _PART)
        file = await asyncio.to_thread(_begin, self.root, part)
        try:
            yield _FileWriter(file)
            await asyncio.to_thread(_finish, file, part, path)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise

    async def read(self, name: str) -> AsyncIterator[bytes]:
        try:
            file = await asyncio.to_thread(self._path(name).open, "rb")
        except FileNotFoundError:
            raise Missing from None
        with file:
            while content := await asyncio.to_thread(file.read, _READ):
                yield content

    async def files(self, folder: str) -> list[str]:
        return await asyncio.to_thread(self._files, folder)

    async def remove(self, name: str) -> None:
        await asyncio.to_thread(_remove, self._path(name))

    def _files(self, folder: str) -> list[str]:
        found = self._path(folder).rglob("*")
        return sorted(str(path.relative_to(self.root)) for path in found if path.is_file())

    def _path(self, name: str) -> Path:
        return self.root / _checked(name)


@dataclass(frozen=True, slots=True)
class _FileWriter:
    file: IO[bytes]

    async def write(self, content: bytes) -> None:
        await asyncio.to_thread(self.file.write, content)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of an S3-compatible store. A file is a folder of numbered objects; the database says when it is whole."""

    store: "S3Store"
    prefix: str

    @asynccontextmanager
    async def writing(self, name: str) -> AsyncIterator[Writer]:
        writer = _SegmentWriter(self.store, self._key(name))
        try:
            yield writer
            await writer.finish()
        except BaseException:
            await asyncio.shield(self.remove(name))
            raise

    async def read(self, name: str) -> AsyncIterator[bytes]:
        keys = await self._keys(self._key(name))
        if not keys:
            raise Missing
        for key in keys:
            got = await self.store.get_async(key)
            async for content in got.stream(min_chunk_size=_READ):
                yield bytes(content)

    async def files(self, folder: str) -> list[str]:
        return [key.removeprefix(self.prefix) for key in await self._keys(self._key(folder))]

    async def remove(self, name: str) -> None:
        if keys := await self._keys(self._key(name)):
            await self.store.delete_async(keys)

    async def _keys(self, folder: str) -> list[str]:
        found = [one["path"] async for page in self.store.list(f"{folder}/") for one in page]
        return sorted(found)

    def _key(self, name: str) -> str:
        return self.prefix + _checked(name)


class _SegmentWriter:
    def __init__(self, store: "S3Store", key: str) -> None:
        self._store, self._key, self._number = store, key, 0
        self._waiting = bytearray()

    async def write(self, content: bytes) -> None:
        self._waiting += content
        while len(self._waiting) >= _SEGMENT:
            await self._put(bytes(self._waiting[:_SEGMENT]))
            del self._waiting[:_SEGMENT]

    async def finish(self) -> None:
        if self._waiting or not self._number:
            await self._put(bytes(self._waiting))

    async def _put(self, content: bytes) -> None:
        await self._store.put_async(f"{self._key}/{self._number:09d}", content, use_multipart=False)
        self._number += 1


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a package's name is made of ids")
    return name


def _begin(root: Path, part: Path) -> IO[bytes]:
    for folder in reversed([part.parent, *_until(root, part.parent)]):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")


def _until(root: Path, folder: Path) -> Iterator[Path]:
    while folder != root:
        folder = folder.parent
        yield folder


def _finish(file: IO[bytes], part: Path, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()
    part.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name is on the disk too
    finally:
        os.close(folder)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=False)
    else:
        path.unlink(missing_ok=True)


def _bucket(place: BucketPlace) -> "S3Store":
    """With all that the place says, so that nothing is asked of the environment or of the host's metadata service."""
    from obstore.store import S3Store  # noqa: PLC0415 - most deployments keep a folder

    return S3Store(
        place.bucket,
        config={
            "access_key_id": place.key_id,
            "secret_access_key": place.secret,
            "endpoint": place.endpoint,
            "region": place.region,
            "virtual_hosted_style_request": False,
            "skip_signature": False,
        },
        client_options={
            "allow_http": place.endpoint.startswith("http://"),
            "timeout": "60s",
            "connect_timeout": "5s",
        },
    )
