"""Our programs as processes of their own that need not import everything first: forked from a process that has.

Importing takes a program longer than most of what a test has it do. That `python -m …` and the installed `afterturn`
work is shown where these are started as they stand: by the tests of `up`, of the demo and of the API's process.
"""

import atexit
import importlib
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

import cli

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    [
        "api.__main__",
        "scheduler.__main__",
        "gateways.scripted_model",
        *(f"cli.{module.name}" for module in pkgutil.iter_modules(cli.__path__)),
    ]
)


class Forked:
    """A running program; what it is asked and told is named as `subprocess` names it.

    `program` is a module whose `main` runs, and its arguments. Without a file for standard error it is a pipe here.
    """

    stderr: IO[str]

    def __init__(
        self,
        program: Sequence[str],
        environment: Mapping[str, str],
        *,
        files: tuple[IO[bytes], IO[bytes], IO[bytes]] | None = None,
        folder: Path | None = None,
    ) -> None:
        with tempfile.TemporaryFile() as nothing:
            read, write = os.pipe()
            self.stderr = os.fdopen(read)
            with os.fdopen(write, "wb") as told:
                ends = [Connection(os.dup(one.fileno())) for one in files or (nothing, nothing, told)]
            self._process = _FORKING.Process(
                target=_run, args=(program, dict(environment), ends, folder or Path.cwd()), daemon=True
            )
            self._process.start()
        for end in ends:
            end.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return code


def run(
    program: Sequence[str], environment: Mapping[str, str], given: str = "", timeout: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Runs a program to its end, with `given` on its standard input."""
    with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        typed.write(given.encode())
        typed.seek(0)
        forked = Forked(program, environment, files=(typed, out, err))
        forked.stderr.close()
        try:
            code = forked.wait(timeout)
        finally:
            forked.kill()
        return subprocess.CompletedProcess(program, code, _written(out), _written(err))


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _run(program: Sequence[str], environment: dict[str, str], ends: list[Connection], folder: Path) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    module, *arguments = program
    sys.argv = [module, *arguments]
    atexit._clear()
    try:
        sys.exit(importlib.import_module(module).main())
    finally:
        atexit._run_exitfuncs()  # a forked process ends without them, and they end its servers
