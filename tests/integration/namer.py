"""A presidio-analyzer server that plays: it finds the names that it is told of, or fails as it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

NAMES = ("Zoraide", "Quental", "Mia Okonkwo")


@dataclass(slots=True)
class Namer:
    """`mode`: good, slow, garbage, elsewhere (places outside the text), or a status; `poison` makes a text fail alone."""

    url: str = ""
    mode: str = "good"
    poison: str = ""
    names: tuple[str, ...] = NAMES
    asked: list[dict[str, Any]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, question: dict[str, Any]) -> tuple[int, bytes]:
        text = question["text"]
        if self.mode.isdigit() or (self.poison and self.poison in text):
            return int(self.mode) if self.mode.isdigit() else 500, b'{"error": "of its own"}'
        if self.mode == "garbage":
            return 200, b'[{"entity_type": "PERSON"}]'
        if self.mode == "elsewhere":
            return 200, json.dumps([_found(0, len(text) + 1)]).encode()
        places = [(text.find(name), len(name)) for name in self.names if name in text]
        found = [_found(start, start + length) for start, length in places]
        return 200, json.dumps([*found, {**_found(0, 1), "entity_type": "LOCATION"}] if text else found).encode()

    @property
    def texts(self) -> list[str]:
        return [question["text"] for question in self.asked]


def _found(start: int, end: int) -> dict[str, Any]:
    return {"entity_type": "PERSON", "start": start, "end": end, "score": 0.85, "analysis_explanation": None}


@asynccontextmanager
async def playing() -> AsyncIterator[Namer]:
    """The server, for as long as the block lasts."""
    namer = Namer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                assert head.startswith(b"POST /analyze ")
                size = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                question = json.loads(await reader.readexactly(size))
                namer.asked.append(question)
                namer.heard.set()
                if namer.mode == "slow":
                    await namer.let_go.wait()
                status, said = namer.answer(question)
                writer.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (status, len(said)) + said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    namer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield namer
    finally:
        namer.let_go.set()
        server.close()
