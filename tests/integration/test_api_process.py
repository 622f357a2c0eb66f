"""`python -m api` as a process: how it starts, what it says, and how it stops."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import forked
from tests.forked import Forked

if TYPE_CHECKING:
    from conftest import Mint

    from config.settings import Settings

ROOT = Path(__file__).parents[2]


def environment(settings: "Settings", **more: str) -> dict[str, str]:
    stores = settings.stores
    secrets = {
        "DATABASE_URL": stores.database_url,
        "REDIS_URL": stores.redis_url,
        "AFTERTURN_KEYS_URL": stores.keys_url,
    }
    assert stores.master_key is not None
    own = {name: secret.get_secret_value() for name, secret in secrets.items()}
    own |= {"AFTERTURN_MASTER_KEY": stores.master_key.get_secret_value(), "AFTERTURN_OBSERVATIONAL_MEMORY": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AFTERTURN_")}
    return kept | own | more


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def process(settings: "Settings") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    started = subprocess.Popen(
        [sys.executable, "-m", "api"],
        cwd=ROOT,
        env=environment(settings, AFTERTURN_PORT=str(port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert until(lambda: listens(port) or started.poll() is not None), started
        yield started, port
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def begun(settings: "Settings") -> Iterator[tuple[Forked, int]]:
    port = free_port()
    started = Forked(["api.__main__"], environment(settings, AFTERTURN_PORT=str(port)))
    try:
        assert until(lambda: listens(port) or started.poll() is not None), started
        yield started, port
    finally:
        started.kill()
        started.wait(30)


def until(holds: object, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:  # type: ignore[operator]  # a function without arguments
        time.sleep(0.02)  # another process has no event to wait for
    return bool(holds())  # type: ignore[operator]


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def command_line(pid: int) -> list[bytes]:
    shown = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, check=True)
    return shown.stdout.split()


def request(secret: str, body: bytes, path: str = "/v1/turns") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {secret}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode() + body


def answered(connection: socket.socket) -> tuple[bytes, bytes]:
    whole = b""
    while b"\r\n\r\n" not in whole or len(whole.partition(b"\r\n\r\n")[2]) < length(whole):
        chunk = connection.recv(65_536)
        if not chunk:
            break
        whole += chunk
    head, _, body = whole.partition(b"\r\n\r\n")
    return head, body


def length(whole: bytes) -> int:
    return int(whole.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)


async def test_a_process_that_is_told_to_stop_answers_what_is_in_flight(
    begun: tuple[Forked, int], mint: "Mint"
) -> None:
    key = await mint()
    started, port = begun
    said = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "my last words"}]}
    whole = request(key.secret, json.dumps(said).encode())
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(whole[:-10])
        # A second request on another connection comes back, so the first one's headers have been read by now.
        with socket.create_connection(("127.0.0.1", port), timeout=30) as other:
            other.sendall(request(key.secret, b'{"agent": "support"}', "/v1/coverage/read"))
            assert answered(other)[0].startswith(b"HTTP/1.1 200")
        started.send_signal(signal.SIGTERM)
        assert until(lambda: not listens(port))
        connection.sendall(whole[-10:])
        head, body = answered(connection)
    assert head.startswith(b"HTTP/1.1 202")
    assert json.loads(body)["accepted"] == 1
    assert started.wait(timeout=30) == -signal.SIGTERM
    assert "Traceback" not in started.stderr.read()


async def test_the_process_names_its_role_and_neither_its_server_nor_its_requests(
    process: tuple[subprocess.Popen[bytes], int], mint: "Mint"
) -> None:
    key = await mint()
    started, port = process
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request(key.secret, b'{"agent": "support"}', "/v1/coverage/read?ana@example.com"))
        head, _ = answered(connection)
    assert head.startswith(b"HTTP/1.1 200")
    assert b"server:" not in head.lower()
    assert b"api" in command_line(started.pid)
    started.send_signal(signal.SIGTERM)
    written = b"".join(started.communicate(timeout=30))
    assert b"ana" not in written
    assert b"coverage" not in written


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"AFTERTURN_OBSERVER_THRESHOLD": "many"}, "AFTERTURN_OBSERVER_THRESHOLD"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL"),
        ({"AFTERTURN_MASTER_KEY": "c2hvcnQ="}, "AFTERTURN_MASTER_KEY"),
    ],
)
def test_a_wrong_setting_ends_the_process_with_one_line_that_names_it(
    settings: "Settings", wrong: dict[str, str], told: str
) -> None:
    done = forked.run(["api.__main__"], environment(settings, **wrong))
    assert done.returncode == 2
    assert done.stderr.startswith(f"afterturn: {told}")
    assert done.stderr.count("\n") == 1


def test_importing_the_application_opens_nothing() -> None:
    code = "import api.app, sys; assert not [name for name in sys.modules if name.startswith('embedded')]"
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=bare, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
