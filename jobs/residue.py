"""What an erasure left, wherever it could be: tables, keys, Redis, package files. The same look whoever asks for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from redis.asyncio import Redis

from config.settings import Settings
from gateways.key_store import KeyStore
from gateways.package_store import PackageStore
from models import residue
from models.database import Database
from models.dataset import Filed, Target
from models.registry import DATA_SETS
from models.residue import Scan

_PATIENCE = 10.0  # seconds an answer of Redis may take
_AT_ONCE = 500  # keys read in one round trip


class Stores(Protocol):
    """Where something could be left: what a worker and an API both have."""

    @property
    def settings(self) -> Settings: ...

    @property
    def database(self) -> Database: ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def packages(self) -> PackageStore | None: ...


@dataclass(frozen=True, slots=True)
class Look:
    """One look everywhere. `redis_keys` is how many there were to look at."""

    scan: Scan
    redis_keys: int
    found: Mapping[str, int]

    @property
    def clean(self) -> bool:
        return not self.found

    def record(self) -> dict[str, Any]:
        """As certificate and answer have it."""
        scan = self.scan
        looked = {"tables": scan.tables, "columns": scan.columns, "rows": scan.rows, "redis_keys": self.redis_keys}
        return {"at": scan.at.isoformat(), "clean": self.clean, "looked_at": looked, "found": dict(self.found)}


async def look(stores: Stores, target: Target) -> Look:
    """Looks at everything. A store that does not answer raises: what was not looked at is not clean."""
    scan = await residue.scan(stores.database, target)
    redis_keys, hits = await _in_redis(stores.settings.stores.redis_url.get_secret_value(), target)
    found = {
        **scan.found,
        "redis": hits,
        "keys": await _undestroyed(stores.keys, target),
        "packages": await _files(stores.packages, target),
    }
    return Look(scan, redis_keys, {place: number for place, number in found.items() if number})


async def _undestroyed(keys: KeyStore, target: Target) -> int:
    query = "SELECT count(*) FROM wrapped_keys WHERE id = ANY ($1::uuid[])"
    return int(await keys.pool.fetchval(query, list(target.subjects)))


async def _files(packages: PackageStore | None, target: Target) -> int:
    """Files beside rows; those that no row names too."""
    if packages is None:
        return 0
    folders = [folder for one in DATA_SETS if isinstance(one, Filed) for folder in one.folders(target)]
    return sum([len(await packages.files(folder)) for folder in folders])


async def _in_redis(url: str, target: Target) -> tuple[int, int]:
    """How many keys there are, and how many of them name a subject, in whatever they hold."""
    needles = [
        form for subject in target.subjects for form in (subject.hex.encode(), str(subject).encode(), subject.bytes)
    ]
    looked = hits = 0
    async with _redis(url) as redis:
        async for keys in _pages(redis):
            looked += len(keys)
            hits += sum(any(needle in text for needle in needles) for text in await _texts(redis, keys))
    return looked, hits


@asynccontextmanager
async def _redis(url: str) -> AsyncIterator[Redis]:
    redis = Redis.from_url(url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)
    try:
        yield redis
    finally:
        await redis.aclose()


async def _pages(redis: Redis) -> AsyncIterator[list[bytes]]:
    cursor, begun = 0, False
    while cursor or not begun:
        begun = True
        cursor, keys = await redis.scan(cursor, count=_AT_ONCE)
        if keys:
            yield keys


async def _texts(redis: Redis, keys: list[bytes]) -> list[bytes]:
    """Each key, with whatever stands under it, as one text."""
    async with redis.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
        kinds = await pipe.execute()
        for key, kind in zip(keys, kinds, strict=True):
            _ask(pipe, key, kind)
        values = await pipe.execute()
    return [key + b" " + _joined(value) for key, value in zip(keys, values, strict=True)]


def _ask(pipe: Any, key: bytes, kind: bytes) -> None:
    match kind:
        case b"zset":
            pipe.zrange(key, 0, -1)
        case b"list":
            pipe.lrange(key, 0, -1)
        case b"set":
            pipe.smembers(key)
        case b"hash":
            pipe.hgetall(key)
        case b"stream":
            pipe.xrange(key)
        case b"string":
            pipe.get(key)
        case _:  # gone since, or of a kind that nothing of ours makes
            pipe.exists(key)


def _joined(value: Any) -> bytes:
    """All bytes inside a value, joined."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        return b" ".join(_joined(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set):
        return b" ".join(map(_joined, value))
    return b""
