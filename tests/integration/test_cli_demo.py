"""`afterturn demo`: it ends well, it ends when told to, and either way leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_DEMO = (Path(sys.executable).with_name("afterturn"), "demo")


def _without_a_network() -> tuple[str, ...]:
    """What runs a command with nothing but a loopback of its own, where this machine lets us."""
    alone = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "alone")
    able = shutil.which("unshare") and shutil.which("ip")
    return alone if able and subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0 else ()


def _environment(temporary: Path) -> dict[str, str]:
    # Settings of this machine must not reach the demo, nor its own what the machine runs.
    elsewhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x", "AFTERTURN_MEMORY_WORKER_MODEL": "another"}
    return os.environ | elsewhere | {"TMPDIR": str(temporary)}


def test_four_days_of_chat_become_a_memory(tmp_path: Path) -> None:
    # Nothing is fetched at run time: no model, no tokeniser, no list of suffixes.
    done = subprocess.run(
        [*_without_a_network(), *_DEMO, "--json"],
        capture_output=True,
        text=True,
        env=_environment(tmp_path),
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["turns"] == {"pending": 0, "observed": 42, "skipped": 0, "quarantined": 0, "expired": 0, "erased": 0}
    assert told["generation"] > 1  # a reflection ran
    corrected = [line for line in told["observations"] if "kilns will" in line["text"]]
    assert [line["refers_to"]["start"] for line in corrected] == ["2026-03-27"]
    assert "marta.quintela@" not in done.stdout
    assert all(line["text"].split(": ", 1)[1] in told["context"][0]["text"] for line in told["observations"])
    assert told["export"]["counts"]["turns"] == 42
    erased = told["certificate"]["document"]
    assert (erased["rows"]["turns"], erased["scan"]["clean"], told["flaws"]) == (42, True, [])
    assert [*tmp_path.iterdir()] == []


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        _DEMO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(tmp_path),
        start_new_session=True,
    )
    assert demo.stdout is not None
    while "Ready after" not in (line := demo.stdout.readline()):
        assert line, "it ended before it began"
    os.killpg(demo.pid, signal.SIGINT)
    _, err = demo.communicate(timeout=60)
    assert (demo.returncode, err) == (1, "afterturn: the demo was stopped\n")
    assert [*tmp_path.iterdir()] == []
    running = subprocess.run(["ps", "-ww", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running
