"""The processes that `up` starts: each is started again when it dies, and ends when `up` does, however that ends."""

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from cli.output import remark

_A_WHILE = 60.0  # seconds after which a process counts as healthy: its next death is a first one
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_LOOPING = 3  # deaths in a row that are no accident any more
_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Child:
    """One process: its role, and how it is started. `deaths` counts those in a row, `code` is the last exit code."""

    role: str
    module: tuple[str, ...]
    environment: Mapping[str, str]
    log: IO[bytes] | int
    grace: float
    deaths: int = 0
    code: int = 0
    looping: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep_alive(self) -> None:
        """Runs the process, again whenever it dies, until cancelled; then ends it within its grace."""
        while True:
            began = time.monotonic()
            process = await self._start()
            try:
                self.code = await process.wait()
            finally:
                await self._end(process)
            self.deaths = self.deaths + 1 if time.monotonic() - began < _A_WHILE else 1
            pause = min(_FIRST_PAUSE * 2 ** (self.deaths - 1), _LONGEST_PAUSE)
            self._tell(pause)
            await asyncio.sleep(pause)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *self.module),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self.log,  # standard output is for the answer of `up` alone
            stderr=self.log,
            env=self.environment,
            start_new_session=True,  # Ctrl-C is for `up`, which ends its children in order
            preexec_fn=_end_with(os.getpid()),
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self.grace):
                await process.wait()
        except TimeoutError:
            remark(f"afterturn: the {self.role} has not ended within {self.grace:g} s and is killed")
        finally:  # a second Ctrl-C comes here at once
            if process.returncode is None:
                process.kill()

    def _tell(self, pause: float) -> None:
        often = f"{self.deaths} times in a row" if self.deaths > 1 else "unasked"
        again = f"starting it again in {pause:g} s"
        remark(f"afterturn: the {self.role} has ended {often} (exit code {self.code}); {again}")
        if self.deaths >= _LOOPING:
            self.looping.set()
            remark(f"afterturn: the {self.role} does not stay up; its own messages say why")


def _end_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork: hardly anything is safe between fork and exec

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the tie held
            os._exit(1)

    return tie
