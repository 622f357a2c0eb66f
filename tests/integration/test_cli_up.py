"""`afterturn up` through crashes: of its processes, of its servers, of itself; and how it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests import forked

AFTERTURN = Path(sys.executable).with_name("afterturn")


class Deployment:
    """One data folder, and the `up` that runs in it now."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, "0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self.log.open("a") as err:
            self.process = subprocess.Popen(
                [AFTERTURN, "up", "--data-dir", self.folder, "--port", self.port],
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                env=_bare(),
                cwd=self.folder.parent,
                start_new_session=True,  # Ctrl-C goes to the whole group of a terminal
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline().split()
        assert said[:1] == ["ready"], self.log.read_text()
        self.url = said[1]
        self.port = self.url.rpartition(":")[2]

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    def child(self, named: str) -> int:
        """The process of that role, once there is one."""
        assert self.process is not None
        return int(until(lambda: self._find(self.process.pid if self.process else 0, named)))

    def _find(self, parent: int, named: str) -> int | None:
        ps = ["ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(parent)]
        lines = subprocess.run(ps, capture_output=True, text=True, check=False).stdout.splitlines()
        found = [int(line.split()[0]) for line in lines if named in line and not line.split()[1].startswith("Z")]
        return found[0] if found else None

    def left(self) -> list[str]:
        """Whatever still runs on the folder."""
        lines = subprocess.run(
            ["ps", "-ww", "-A", "-o", "args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return [line for line in lines if f"{self.folder}/" in line and "postgres: " not in line]

    def post(self, secret: str, text: str) -> int:
        body = {"agent": "a", "conversation_id": "c", "turns": [{"id": text, "role": "user", "content": text}]}
        return self.call(secret, "/v1/turns", body)[0]

    def call(self, secret: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers)  # noqa: S310 - loopback http
        try:
            with urlopen(request, timeout=10) as reply:  # noqa: S310 - as above
                return reply.status, json.load(reply)
        except HTTPError as refused:
            with refused:
                return refused.code, {}
        except OSError:
            return 0, {}

    def command(self, *arguments: str) -> Any:
        done = forked.run(("cli.__main__", *arguments, "--data-dir", str(self.folder)), _bare())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _bare() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERTURN_") and name not in ("DATABASE_URL", "REDIS_URL")
    }


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the condition answers, once that is true."""
    deadline = time.monotonic() + seconds
    while not (met := condition()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
    return met


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    for name in ("api", "config", "models", "scheduler"):  # a chat server's own, where its engineer types `up`
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not Afterturn')\n")
    there = Deployment(tmp_path / "data")
    there.start()
    yield there
    if there.process is not None and there.process.poll() is None:
        there.process.terminate()
        there.process.wait(30)


def test_whatever_dies_is_started_again_and_nothing_is_lost(deployment: Deployment) -> None:
    assert stat.S_IMODE(deployment.folder.stat().st_mode) == 0o700
    secret = deployment.command("keys", "create", "--json", "--scopes", "turns:write,memory:read")["secret"]
    assert deployment.post(secret, "one") == 202

    for named in ("-m api", "-m scheduler worker", "data/cluster", "keys/cluster", "valkey-server"):
        before = deployment.child(named)
        os.kill(before, signal.SIGKILL)
        until(lambda named=named, before=before: deployment.child(named) != before)
    until(lambda: deployment.post(secret, "two") == 202)
    told = deployment.log.read_text()
    assert "the api has ended unasked (exit code -9)" in told
    assert "PostgreSQL (data) has ended; starting it again" in told

    # Killed itself, it leaves no process of ours behind, and the next one begins where it ended.
    worker = deployment.child("-m scheduler worker")
    assert deployment.process is not None
    deployment.process.kill()
    deployment.process.wait()
    until(lambda: not Path(f"/proc/{worker}").exists() or Path(f"/proc/{worker}/cmdline").read_bytes() == b"")
    deployment.start()
    assert deployment.post(secret, "one") == 202
    answer = deployment.call(secret, "/v1/turns", {"agent": "a", "conversation_id": "c", "turns": [_said("two")]})[1]
    assert (answer["accepted"], answer["duplicates"]) == (0, 1)

    # Ctrl-C reaches the whole group of the terminal; the processes end in order all the same.
    began = time.monotonic()
    os.killpg(deployment.process.pid, signal.SIGINT)
    assert deployment.process.wait(30) == 0
    assert time.monotonic() - began < 15
    assert deployment.left() == []
    assert not (deployment.folder / "servers.json").exists()

    # What is sealed is lost without the master key, so a folder takes no other, and one that misses it gets no new one.
    (deployment.folder / "master.key").write_text("A" * 43 + "=\n")
    assert _refused_up(deployment.folder) == (
        2,
        "afterturn: AFTERTURN_MASTER_KEY is not the key that the key store was begun with: put that one back\n",
    )
    (deployment.folder / "master.key").unlink()
    code, told = _refused_up(deployment.folder)
    assert code == 1
    assert "master.key is gone" in told
    assert len(told.splitlines()) == 1
    assert not (deployment.folder / "master.key").exists()


def _refused_up(folder: Path) -> tuple[int, str]:
    refused = _up(folder)
    assert refused.stdout == ""
    return refused.returncode, refused.stderr


def _up(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return forked.run(("cli.__main__", "up", "--data-dir", str(folder), "--port", "0"), _bare() | environment)


def _said(text: str) -> dict[str, str]:
    return {"id": text, "role": "user", "content": text}


def test_a_wrong_setting_is_told_before_anything_is_started(tmp_path: Path) -> None:
    refused = _up(tmp_path / "data", AFTERTURN_REFLECTOR_THRESHOLD="few")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("afterturn: AFTERTURN_REFLECTOR_THRESHOLD")
    assert not (tmp_path / "data").exists()


def test_a_folder_that_everybody_writes_to_holds_no_keys(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "theirs").touch()
    refused = _up(tmp_path)
    assert refused.returncode == 1
    assert "chmod o-w" in refused.stderr
    assert {entry.name for entry in tmp_path.iterdir()} == {"theirs"}


def test_a_file_where_a_server_belongs_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("notes of mine")
    told = f"afterturn: {tmp_path / 'keys'} is no folder, and a server's data belong there: move it away\n"
    assert _refused_up(tmp_path) == (1, told)
    assert (tmp_path / "keys").read_text() == "notes of mine"
