"""The embedded Valkey: private, forgetful by design, and back in a moment."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from arq.connections import RedisSettings, create_pool
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError

from gateways import embedded_valkey
from gateways.embedded_folder import EmbeddedServerBusy, EmbeddedServerError

ROOT = Path(__file__).parents[2]


def in_program(source: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", source, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(place: Path) -> int | None:
    return place.stat().st_mode & 0o777 if place.exists() else None


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and command_line(pid) != ""


async def test_redis_py_and_arq_take_the_url(tmp_path: Path) -> None:
    server = embedded_valkey.start(tmp_path / "valkey")
    async with Redis.from_url(server.url, decode_responses=True) as redis:
        assert await redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert await redis.config_get("save") == {"save": ""}
        assert await redis.config_get("port") == {"port": "0"}
    pool = await create_pool(RedisSettings.from_dsn(server.url))
    assert await pool.ping()
    await pool.aclose()
    server.stop()
    server.stop()  # harmless


async def test_it_comes_back_empty_after_a_crash_under_the_same_url(tmp_path: Path) -> None:
    server = embedded_valkey.start(tmp_path)
    async with Redis.from_url(server.url) as redis:
        await redis.set("kept", "no")
    url = server.url
    server.kill()
    server.restart()
    async with Redis.from_url(server.url) as redis:
        assert await redis.get("kept") is None
    assert server.url == url
    server.stop()
    assert names(tmp_path) == ["lock", "log", "pid", "socket"]


def test_its_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    server = embedded_valkey.start(tmp_path)
    assert mode(tmp_path / "socket") == 0o700
    assert mode(tmp_path / "socket" / "valkey.sock") == 0o700
    server.stop()


def test_a_second_program_is_refused(tmp_path: Path) -> None:
    server = embedded_valkey.start(tmp_path)
    with pytest.raises(EmbeddedServerBusy, match="in use"):
        embedded_valkey.start(tmp_path)
    server.stop()
    embedded_valkey.start(tmp_path).stop()


async def test_a_server_left_by_a_killed_program_is_ended(tmp_path: Path) -> None:
    source = (
        "import os, signal, sys; from pathlib import Path; from gateways import embedded_valkey\n"
        "print(embedded_valkey.start(Path(sys.argv[1])).pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = in_program(source, str(tmp_path))
    assert died.returncode == -signal.SIGKILL
    server = embedded_valkey.start(tmp_path)
    async with Redis.from_url(server.url) as redis:
        assert (await redis.info("server"))["process_id"] == server.pid != int(died.stdout)
    assert not is_alive(int(died.stdout))
    server.stop()


async def test_a_long_or_odd_folder_gets_a_short_private_socket(tmp_path: Path) -> None:
    server = embedded_valkey.start(tmp_path / ("deep " * 30) / "ü")
    async with Redis.from_url(server.url) as redis:
        assert await redis.ping()
    place = Path(server.url.removeprefix("unix://").removesuffix("?db=0")).parent
    assert mode(place) == 0o700
    server.stop()
    assert mode(place) is None


async def test_a_port_comes_with_a_password(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = embedded_valkey.start(tmp_path, port=port)
    password = server.url.partition("://:")[2].partition("@")[0]
    async with Redis(port=port, password=password) as redis:
        assert await redis.ping()
    async with Redis(port=port) as stranger:
        with pytest.raises(AuthenticationError):
            await stranger.ping()
    async with Redis.from_url(server.url) as by_socket:
        assert await by_socket.ping()
    assert password not in command_line(server.pid)
    server.stop()


def test_a_taken_port_is_told_and_leaves_the_folder_free(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EmbeddedServerError, match="did not start"):
            embedded_valkey.start(tmp_path, port=taken.getsockname()[1])
    embedded_valkey.start(tmp_path).stop()


def test_a_pid_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    embedded_valkey.start(tmp_path).stop()
    assert Path(f"/proc/{os.getpid()}").exists()
