"""A process under `up`: started again when it dies, said plainly when it does not stay up, ended when `up` ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.children import Child

_TELLS = "import os, pathlib; told = pathlib.Path(os.environ['TOLD']); told.open('a').write(f'{os.getpid()}\\n')\n"


def _child(folder: Path, program: str, grace: float = 5.0) -> Child:
    (folder / "role.py").write_text(_TELLS + program)
    (folder / "told").touch()
    environment = os.environ | {"PYTHONPATH": str(folder), "TOLD": str(folder / "told")}
    return Child("worker", ("role",), environment, subprocess.DEVNULL, grace)


async def _starts(folder: Path, count: int) -> list[int]:
    while len(lines := (folder / "told").read_text().splitlines()) < count:  # noqa: ASYNC110 - another process tells
        await asyncio.sleep(0.01)
    return [int(line) for line in lines]


async def _end(keeper: asyncio.Task[None]) -> None:
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_process_that_keeps_dying_is_told_of_plainly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = _child(tmp_path, "raise SystemExit(3)\n")
    keeper = asyncio.create_task(child.keep_alive())
    await asyncio.wait_for(child.looping.wait(), 30)
    await _end(keeper)
    assert (child.deaths, child.code) == (3, 3)
    told = capsys.readouterr().err
    assert "the worker has ended 3 times in a row (exit code 3); starting it again in 2 s" in told
    assert "the worker does not stay up" in told


async def test_it_is_started_again_under_a_new_id(tmp_path: Path) -> None:
    child = _child(tmp_path, "import signal; signal.pause()\n")
    keeper = asyncio.create_task(child.keep_alive())
    first = (await _starts(tmp_path, 1))[0]
    os.kill(first, signal.SIGKILL)
    assert (await _starts(tmp_path, 2))[1] != first
    await _end(keeper)
    assert not any(map(_lives, await _starts(tmp_path, 2)))


async def test_it_is_given_its_grace_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntold.open('a').write('0\\n')\nwhile True: signal.pause()\n"
    keeper = asyncio.create_task(_child(tmp_path, deaf, grace=0.2).keep_alive())
    pid = (await _starts(tmp_path, 2))[0]
    await _end(keeper)
    while _lives(pid):  # noqa: ASYNC110 - the kernel ends it, and tells nobody here
        await asyncio.sleep(0.01)
    assert "has not ended within 0.2 s and is killed" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
async def test_it_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    _child(tmp_path, "import signal; signal.pause()\n")
    up = (
        "import asyncio, os, subprocess\n"
        "from cli.children import Child\n"
        "asyncio.run(Child('worker', ('role',), dict(os.environ), subprocess.DEVNULL, 5.0).keep_alive())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "TOLD": str(tmp_path / "told")}
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", up, env=environment)
    pid = (await _starts(tmp_path, 1))[0]
    starter.kill()
    await starter.wait()
    while _lives(pid):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
