"""The built-in model, in a process of its own that stands behind all others.

Its rules are nothing but processor time. In a thread they would hold up the event loop that renews claims and rings the
bell; at the same priority they would hold up the answers to requests on the same machine.
"""

import asyncio
import contextlib
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ParamSpec, TypeVar

_NICE = 10  # about a tenth of a busy processor, all of an idle one
_LENGTH = 8  # bytes in front of each message that say how long it is

P = ParamSpec("P")
T = TypeVar("T")


class MindLost(Exception):
    """The process ended over a thought: killed, or out of memory."""


class MindBroke(Exception):
    """The thinking raised. Names the error and, in a note, where; not what it said, which may quote a person."""


@dataclass(slots=True)
class Mind:
    """One thought at a time. Its process starts with the first, and again after it was lost."""

    _process: asyncio.subprocess.Process | None = None
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def think(self, rules: Callable[P, T], *matter: P.args, **named: P.kwargs) -> T:
        """What `rules`, a function of a module, answers. Cancelled, it stops thinking. Raises MindLost and MindBroke."""
        async with self._alone:
            try:
                done, thought, where = await self._exchange(pickle.dumps((rules, matter, named)))
            except (EOFError, OSError):
                self.stop()
                raise MindLost from None
            except BaseException:
                self.stop()  # its answer would be taken for the next one's
                raise
        if done:
            answer: T = thought
            return answer
        error = MindBroke(thought)
        error.add_note(where)
        raise error

    def stop(self) -> None:
        """Ends its process, whatever it thinks about."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _exchange(self, question: bytes) -> tuple[bool, Any, str]:
        process = self._process = self._process or await _born()
        if process.stdin is None or process.stdout is None:
            raise EOFError
        process.stdin.write(_framed(question))
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(_LENGTH))
        answer: tuple[bool, Any, str] = pickle.loads(await process.stdout.readexactly(length))  # noqa: S301 - our own child
        return answer


@asynccontextmanager
async def awake() -> AsyncIterator[Mind]:
    """A mind that ends with the block; when this process is killed, it ends by itself."""
    mind = Mind()
    try:
        yield mind
    finally:
        mind.stop()


async def _born() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(_LENGTH) + message


def main() -> None:
    """The child: thinks about what comes in, until nothing can come any more."""
    for sign in (signal.SIGINT, signal.SIGTERM):  # meant for the parent, which lets a thought end
        signal.signal(sign, signal.SIG_IGN)
    os.nice(_NICE)
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not print into an answer
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    while True:
        answers.write(_framed(_answer(questions.get())))
        answers.flush()


def _listen(wire: BinaryIO, questions: "queue.SimpleQueue[bytes]") -> None:
    # In a thread of its own, the parent's death is noticed in the middle of a thought.
    while len(length := wire.read(_LENGTH)) == _LENGTH:
        questions.put(wire.read(int.from_bytes(length)))
    os._exit(0)


def _answer(question: bytes) -> bytes:
    try:
        rules, matter, named = pickle.loads(question)  # noqa: S301 - from our own parent
        return pickle.dumps((True, rules(*matter, **named), ""))
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        return pickle.dumps((False, type(error).__name__, "".join(traceback.format_tb(error.__traceback__))))


if __name__ == "__main__":
    main()
