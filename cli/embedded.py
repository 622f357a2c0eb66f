"""The servers that `up` brings along: PostgreSQL for the data, PostgreSQL for the keys, Valkey for the bell."""

import asyncio
import base64
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.failure import Failed
from cli.output import remark
from cli.servers import read, write_private
from gateways import embedded_postgres, embedded_valkey
from gateways.embedded_folder import EmbeddedServerBusy, EmbeddedServerError, hold
from gateways.embedded_postgres import Postgres
from gateways.embedded_valkey import Valkey

_DATA, _KEYS, _VALKEY, _MASTER = "data", "keys", "valkey", "master.key"
_FORMER = "master.key.previous"  # put there by whoever rotates it
_KEYS_NAME = "afterturn_keys"  # of its database and role
_OURS = frozenset({_DATA, _KEYS, _VALKEY, _MASTER, _FORMER, "lock", "servers.json"})
_LONGEST_PAUSE = 30.0  # seconds between tries to start a server again


@dataclass(frozen=True, slots=True)
class Embedded:
    """The three servers while they run, and the files of the master key and, while it is rotated, of the former one."""

    data: Postgres
    keys: Postgres
    valkey: Valkey
    master_key_file: Path
    former_key_file: Path | None

    def named(self) -> dict[str, Postgres | Valkey]:
        """Each server under the name by which it is spoken of."""
        return {"PostgreSQL (data)": self.data, "PostgreSQL (keys)": self.keys, "Valkey": self.valkey}


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Holds the data folder, made when new, as long as the block lasts; Failed when it is in use or will not do."""
    lock = _take(folder)
    try:
        yield
    finally:
        os.close(lock)


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Embedded]:
    """Runs the servers in a folder that was taken as long as the block lasts; Valkey ends first.

    Raises Failed, with one line, when one does not start.
    """
    async with AsyncExitStack() as stack:
        master_key_file = _master_key(folder)
        keys, data, valkey = await _start(folder)
        # What starts last ends first: nobody rings while the data goes away.
        for server in (keys, data, valkey):
            stack.push_async_callback(asyncio.to_thread, server.stop)
        yield Embedded(data, keys, valkey, master_key_file, _former_key(master_key_file))


async def keep_alive(name: str, server: Postgres | Valkey) -> None:
    """Starts the server again whenever it dies, until cancelled."""
    pause = 0.5
    while await _death(server.pid):
        remark(f"afterturn: {name} has ended; starting it again")
        try:
            await asyncio.to_thread(server.restart)
            pause = 0.5
        except EmbeddedServerError as error:
            remark(f"afterturn: {_one_line(error)}; trying again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _take(folder: Path) -> int:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(folder)
        return hold(folder)
    except EmbeddedServerBusy:
        servers = read(folder)
        raise Failed(
            f"{folder} is in use: `afterturn up` runs there{f' at {servers.url}' if servers else ''}"
        ) from None
    except OSError as error:
        raise Failed(f"{folder} cannot be the data folder: {error.strerror}") from None


def _make_private(folder: Path) -> None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if all(entry.name in _OURS for entry in folder.iterdir()):
        folder.chmod(0o700)
    elif mode & 0o002:
        raise Failed(
            f"{folder} holds other files and everybody may write to it: take another folder, or `chmod o-w` it"
        )


def _master_key(folder: Path) -> Path:
    file = folder / _MASTER
    if file.exists():
        return file.absolute()
    if (folder / _KEYS / "cluster").exists():
        raise Failed(f"{file} is gone, and every key in {folder / _KEYS} is wrapped by it: put it back from a backup")
    write_private(file, base64.b64encode(os.urandom(32)).decode() + "\n")
    return file.absolute()


def _former_key(master_key_file: Path) -> Path | None:
    file = master_key_file.with_name(_FORMER)
    return file if file.exists() else None


async def _start(folder: Path) -> tuple[Postgres, Postgres, Valkey]:
    # Where one fails, the others' own atexit hooks end them.
    try:
        return await asyncio.gather(
            asyncio.to_thread(embedded_postgres.start, folder / _KEYS, database=_KEYS_NAME, role=_KEYS_NAME),
            asyncio.to_thread(embedded_postgres.start, folder / _DATA),
            asyncio.to_thread(embedded_valkey.start, folder / _VALKEY),
        )
    except EmbeddedServerError as error:
        raise Failed(_one_line(error)) from None


async def _death(pid: int) -> bool:
    """Waits until the process has ended, without taking its exit code from whoever started it. True, always."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    if sys.platform != "linux":
        return await gone.wait()  # only Linux tells without reaping
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    loop.add_reader(watched, gone.set)
    try:
        return await gone.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
