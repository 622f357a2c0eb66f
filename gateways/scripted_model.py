"""A model server that does as it is told: the fake of `model_server`, for tests, benches and chaos.

In a program: `async with scripted("good") as server: … server.url`. On its own:
`python -m gateways.scripted_model --port N --script SCRIPT`. While it runs, POST a script to /script; GET /requests
tells what came.

A script is a behaviour's name; a list of names, played in order, the last one for good; or names with weights. With
parameters it is an object: {"play": SCRIPT, "seed": 0, "seconds": 1.0, "retry_after": "1"}.
"""

import argparse
import asyncio
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from gateways.scripted_behaviour import BEHAVIOURS, Asked, Mood, Reply
from gateways.scripted_echo import echo

Script = str | Sequence[str] | Mapping[str, Any] | Callable[[Asked], str]
_KEPT = 10_000  # requests that are remembered whole


@asynccontextmanager
async def scripted(
    script: Script = "good", *, answer: Callable[[Asked], str] = echo, port: int = 0
) -> AsyncIterator["ScriptedModel"]:
    """A server on 127.0.0.1 for as long as the block runs. `answer` makes the text of a good answer."""
    model = ScriptedModel(script, answer)
    server = await asyncio.start_server(model.serve, "127.0.0.1", port, limit=64 * 1024 * 1024)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield model
    finally:
        server.close()
        await model.hang_up()


class ScriptedModel:
    """What came in, and what is done to it. `count` and `peak` are over the server's life."""

    def __init__(self, script: Script, answer: Callable[[Asked], str]) -> None:
        self.url = ""
        self.asked: deque[Asked] = deque(maxlen=_KEPT)
        self.count = self.in_flight = self.peak = 0
        self._answer = answer
        self._arrived = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()
        self.play(script)

    def play(self, script: Script) -> None:
        """Go on by this script. Raises ValueError for one that names no known behaviour."""
        self._mood = Mood()
        if isinstance(script, Mapping) and "play" in script:
            self._mood = Mood(float(script.get("seconds", 1.0)), str(script.get("retry_after", "1")))
            self._choose = _chooser(script["play"], int(script.get("seed", 0)))
        else:
            self._choose = _chooser(script, 0)

    async def received(self, count: int) -> None:
        """Wait until so many requests have come in all."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.count >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        # Cancelled by `hang_up` alone: to end so is no error, and asyncio would log it as one.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def hang_up(self) -> None:
        """End every connection, the hanging ones too."""
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        path, headers, body = await _read_request(reader)
        if path.endswith("/chat/completions"):
            return await self._complete(
                Asked(json.loads(body), headers, asyncio.get_running_loop().time()), reader, writer
            )
        return await _send(self._steer(path, body), reader, writer)

    async def _complete(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await self._note(asked)
        try:
            behave = BEHAVIOURS[self._choose(asked)]
            return await _send(behave(asked, self._answer(asked), self._mood), reader, writer)
        finally:
            self.in_flight -= 1

    async def _note(self, asked: Asked) -> None:
        self.asked.append(asked)
        self.count += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        async with self._arrived:
            self._arrived.notify_all()

    def _steer(self, path: str, body: bytes) -> Reply:
        if path == "/requests":
            times = [asked.at for asked in self.asked]
            told = {"count": self.count, "in_flight": self.in_flight, "peak": self.peak, "times": times}
            return Reply(json.dumps(told).encode())
        if path != "/script":
            return Reply(b'{"error": "unknown path"}', status=404)
        try:
            self.play(json.loads(body))
        except (ValueError, TypeError) as error:
            return Reply(json.dumps({"error": str(error)}).encode(), status=422)
        return Reply(b"{}")


def _chooser(play: Script, seed: int) -> Callable[[Asked], str]:
    if callable(play):
        return play
    names = [play] if isinstance(play, str) else list(play)
    if not names or (unknown := set(names) - BEHAVIOURS.keys()):
        raise ValueError(f"unknown behaviours: {sorted(unknown)}" if names else "a script names a behaviour")
    if isinstance(play, Mapping):
        drawn = random.Random(seed)  # noqa: S311 - the same seed shall give the same run
        return lambda _asked: drawn.choices(names, [float(play[name]) for name in names])[0]
    left = deque(names)
    return lambda _asked: left.popleft() if len(left) > 1 else left[0]


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return first.split(" ")[1], headers, body


async def _send(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection goes on afterwards."""
    if reply.hangs:
        await reader.read()  # until the client has had enough
        return False
    await asyncio.sleep(reply.delay)
    if reply.cut is not None and reply.cut < 0:
        return False
    writer.write(_head(reply))
    for piece in _pieces(reply):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(reply.drip)
    await writer.drain()
    return reply.cut is None


def _head(reply: Reply) -> bytes:
    headers = [("content-type", reply.content_type), ("content-length", str(len(reply.body))), *reply.headers]
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _pieces(reply: Reply) -> list[bytes]:
    body = reply.body[: reply.cut]
    size = 1 if reply.drip else 65_536
    return [body[start : start + size] for start in range(0, len(body), size)]


async def _run(port: int, script: Script) -> None:
    async with scripted(script, port=port) as model:
        print(f"ready {model.url}", flush=True)  # noqa: T201 - the line that whoever started it waits for
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripted_model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default="good", help="a behaviour's name, or a script as JSON")
    options = parser.parse_args()
    script = json.loads(options.script) if options.script[:1] in "[{" else options.script
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(options.port, script))


if __name__ == "__main__":
    main()
