"""How processes start: with the wrong master key not at all, before their stores are up only once these are."""

import asyncio
import base64
import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from gateways import key_store
from gateways.master_proof import WrongMasterKey
from tests import forked
from tests.forked import Forked

if TYPE_CHECKING:
    from conftest import Servers

    from config.settings import Settings
    from jobs.resources import Resources

ROLES = [("api.__main__",), ("scheduler.__main__", "worker"), ("scheduler.__main__", "scheduler")]


def environment(settings: "Settings", **more: str) -> dict[str, str]:
    stores = settings.stores
    assert stores.master_key is not None
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AFTERTURN_")},
        "DATABASE_URL": stores.database_url.get_secret_value(),
        "AFTERTURN_KEYS_URL": stores.keys_url.get_secret_value(),
        "REDIS_URL": stores.redis_url.get_secret_value(),
        "AFTERTURN_MASTER_KEY": stores.master_key.get_secret_value(),
        "AFTERTURN_PORT": str(free_port()),
        **more,
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def ended(command: tuple[str, ...], surroundings: dict[str, str]) -> tuple[int, list[str]]:
    done = forked.run(command, surroundings)
    return done.returncode, done.stderr.strip().splitlines()


def another_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


@pytest.mark.parametrize(
    "command", [*ROLES, ("cli.__main__", "keys", "create", "--name", "n", "--scopes", "turns:write")]
)
async def test_a_process_refuses_another_deployments_master_key(
    resources: "Resources", settings: "Settings", command: tuple[str, ...]
) -> None:
    del resources  # it was the first to open the key store
    surroundings = environment(settings, AFTERTURN_MASTER_KEY=another_key())
    assert await asyncio.to_thread(ended, command, surroundings) == (
        2,
        ["afterturn: AFTERTURN_MASTER_KEY is not the key that the key store was begun with: put that one back"],
    )


async def opens(url: str, master: bytes) -> bool:
    try:
        async with key_store.connect(url, master, size=1) as store:
            await store.make(uuid4(), "subject")
    except WrongMasterKey:
        return False
    return True


async def test_of_two_first_starts_with_two_keys_one_wins_and_stays(keys_url: str) -> None:
    masters = [os.urandom(32) for _ in range(6)]
    first = await asyncio.gather(*(opens(keys_url, master) for master in masters))
    assert first.count(True) == 1
    assert [await opens(keys_url, master) for master in masters] == first


@pytest.mark.parametrize("command", ROLES)
@pytest.mark.parametrize("store", ["data", "keys"])
async def test_a_process_waits_for_a_database_that_is_being_restarted(
    settings: "Settings", servers: "Servers", command: tuple[str, ...], store: str
) -> None:
    server, surroundings = getattr(servers, store), environment(settings)
    await asyncio.to_thread(server.kill)
    try:
        started = Forked(command, surroundings)
        waiting = await asyncio.to_thread(started.stderr.readline)
        assert "store_waited_for" in waiting
    finally:
        await asyncio.to_thread(server.restart)
    rest: list[str] = []
    reads = threading.Thread(target=lambda: rest.extend(started.stderr), daemon=True)
    reads.start()
    works = {
        "api.__main__": lambda: listens(int(surroundings["AFTERTURN_PORT"])),
        "worker": lambda: any("worker_started" in line for line in rest),
    }
    async with asyncio.timeout(30):
        while command[-1] in works and not works[command[-1]]():  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.05)
    assert started.poll() is None, rest
    started.terminate()
    await asyncio.to_thread(started.wait, 30)
    reads.join(10)
    assert not [line for line in rest if "Traceback" in line]


@pytest.mark.parametrize("command", ROLES)
async def test_a_database_that_stays_away_is_one_line_in_the_end(
    settings: "Settings", command: tuple[str, ...]
) -> None:
    surroundings = environment(settings, DATABASE_URL="postgresql://u@127.0.0.1:1/x", AFTERTURN_START_WITHIN="1s")
    code, lines = await asyncio.to_thread(ended, command, surroundings)
    assert code == 1
    assert lines[-1] == ("afterturn: the data database behind DATABASE_URL does not answer: ConnectionRefusedError")
    assert not [line for line in lines if "Traceback" in line]


async def test_a_worker_starts_without_redis(settings: "Settings") -> None:
    started = Forked(ROLES[1], environment(settings, REDIS_URL="redis://127.0.0.1:1/0"))
    lines = []
    async with asyncio.timeout(30):
        while not lines or "store_went_away" not in lines[-1]:
            lines.append(await asyncio.to_thread(started.stderr.readline))
            assert started.poll() is None, lines
    started.terminate()
    assert await asyncio.to_thread(started.wait, 30) == 0
    assert "Traceback" not in "".join(lines) + started.stderr.read()
