"""A server between a client and a PostgreSQL on a Unix socket that can fall silent, as a frozen machine does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit, urlunsplit


class Relay:
    """`url` leads through it. While `silent`, what is sent is taken and nothing is ever answered."""

    def __init__(self, behind: str) -> None:
        self._behind = urlsplit(behind)
        place = parse_qs(self._behind.query)
        self._socket = f"{place['host'][0]}/.s.PGSQL.{place['port'][0]}"
        self._flows = asyncio.Event()
        self._flows.set()
        self._ways: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        signed = self._behind.netloc.rpartition("@")[0]
        return urlunsplit(self._behind._replace(netloc=f"{signed}@127.0.0.1:{self.port}", query=""))

    def fall_silent(self) -> None:
        self._flows.clear()

    def speak(self) -> None:
        self._flows.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_unix_connection(self._socket)
        ways = {asyncio.create_task(self._pass(reader, outer)), asyncio.create_task(self._pass(inner, writer))}
        self._ways |= ways
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (outer, writer):
            end.close()
        self._ways -= ways

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                await self._flows.wait()
                sink.write(data)
                await sink.drain()

    def end(self) -> None:
        for way in self._ways:
            way.cancel()


@asynccontextmanager
async def relayed(behind: str) -> AsyncIterator[Relay]:
    relay = Relay(behind)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.end()
