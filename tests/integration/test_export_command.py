"""`afterturn export` as an operator types it, against an `afterturn up`; its worker is killed half-way once."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked

AFTERTURN = Path(sys.executable).with_name("afterturn")
CHATS = Path(__file__).parents[1] / "fixtures" / "chats" / "agent_runs.json"
PERSON = "email:ana@example.org"


def bare() -> dict[str, str]:
    """This machine's environment without any setting of the service."""
    kept = ("DATABASE_URL", "REDIS_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith("AFTERTURN_") and name not in kept}


def typed(folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return forked.run(("cli.__main__", *map(str, arguments), "--data-dir", str(folder)), bare())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("up")
    command = [AFTERTURN, "up", "--data-dir", folder, "--port", "0", "--json"]
    environment = bare() | {"AFTERTURN_SWEEP_EVERY": "1s", "AFTERTURN_WORKER_CLAIM": "2s"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"]
        imported = typed(folder, "import", CHATS, "--agent", "support", "--as", PERSON)
        assert imported.returncode == 0, imported.stderr
        yield folder
        process.send_signal(signal.SIGINT)


def test_a_package_is_made_and_written_where_it_is_wanted(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "file.zip"
    done = typed(folder, "export", "--subject", PERSON, "--out", out, "--wait", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["state"], said["counts"]["turns"]) == ("ready", 8)
    assert out.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(out) as package:
        assert package.testzip() is None
        assert package.read("data/turns.jsonl").count(b"\n") == 8
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip"]


def test_without_waiting_only_its_id_is_told(folder: Path) -> None:
    done = typed(folder, "export", "--subject", PERSON, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"].startswith("exp_")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--subject", "email:nobody@example.org"), 1, "knows nobody of that handle"),
        (("--subject", "ana"), 2, "takes KIND:HANDLE"),
        (("--subject", PERSON, "--out", "/nowhere/at/all.zip"), 2, "there is no folder"),
        (("--subject", PERSON, "--space", "nowhere"), 1, "there is no space nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = typed(folder, "export", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr.splitlines()[-1]
    assert "ana@" not in done.stderr
    assert "nobody@" not in done.stderr


def test_a_worker_that_is_killed_half_way_costs_the_package_nothing(folder: Path, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": f"What I said as number {number}."} for number in range(15_000)]}
    (tmp_path / "long.json").write_text(json.dumps(chat))
    person = "email:talkative@example.org"
    assert typed(folder, "import", tmp_path / "long.json", "--agent", "support", "--as", person).returncode == 0
    out = tmp_path / "file.zip"
    command = [AFTERTURN, "export", "--subject", person, "--out", out, "--data-dir", folder, "--json"]
    with subprocess.Popen(command, env=bare(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        part = first_part(folder)
        os.kill(worker(folder), signal.SIGKILL)
        said, told = asking.communicate(timeout=100)
    assert asking.returncode == 0, told
    assert json.loads(said)["counts"]["turns"] == 15_000
    files = [path for path in (folder / "packages").rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix == ".part"]
    assert part.with_suffix("") not in files
    with zipfile.ZipFile(out) as package:
        assert package.read("data/turns.jsonl").count(b"\n") == 15_000


def first_part(folder: Path) -> Path:
    """The first piece of a package that somebody writes."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for part in (folder / "packages").rglob("*.part"):
            return part
    raise AssertionError("nobody writes a package")


def worker(folder: Path) -> int:
    """The process of this deployment's worker."""
    mine = str(folder).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if b"scheduler\0worker" in command and mine in environment:
            return int(process.name)
    raise AssertionError("there is no worker")
