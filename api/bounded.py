"""A request may only be so long in its head, and may only take so long to arrive: on the wire, before anything is made of it."""

import asyncio
from functools import partial
from typing import Any
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_NO_HTTP = b"400 Bad Request"
_REFUSED = (
    b'{"type":"urn:afterturn:problem:refused","title":"%s","status":%s,"code":"refused","instance":"urn:uuid:%s"}'
)
_TOO_LONG = b"431 Request Header Fields Too Large"
_TOO_SLOW = b"408 Request Timeout"


class Joined:
    """A transport that holds a write back until the next one, or the loop's next turn.

    An answer's head and its body leave together: a system call and a wake-up of the client less, for each request.
    """

    __slots__ = ("_held", "_loop", "_wire", "is_closing")

    def __init__(self, wire: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._wire, self._loop = wire, loop
        self._held: bytes | None = None
        self.is_closing = wire.is_closing

    def write(self, data: bytes) -> None:
        if self._held is not None:
            data, self._held = self._held + data, None
            self._wire.write(data)
        else:
            self._held = data
            self._loop.call_soon(self._let_go)

    def close(self) -> None:
        self._let_go()
        self._wire.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def _let_go(self) -> None:
        if self._held is not None:
            data, self._held = self._held, None
            self._wire.write(data)


def bounded(most_head: int, within: float) -> Any:
    """uvicorn's protocol with both bounds: bytes of a request's head, seconds for all of a request to arrive."""
    return partial(BoundedProtocol, most_head=most_head, within=within)


class BoundedProtocol(HttpToolsProtocol):
    """Counts what comes before a head is complete, and watches the clock from a request's first byte to its last.

    A connection that was opened and says nothing is given as long.
    """

    def __init__(self, *made: Any, most_head: int, within: float, **how: Any) -> None:
        super().__init__(*made, **how)
        self._most_head, self._within = most_head, within
        self._head: int | None = 0  # bytes of a head that is not complete; None: none is coming
        self._named = 0  # bytes of the headers of this head, as far as they are parsed
        self._whole = False  # the request that came last
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]  # it does what is asked of one
        self._start_watch()

    def data_received(self, data: bytes) -> None:
        if self._whole:  # the next request's first bytes
            self._whole, self._head = False, 0
        if self._head is not None:
            self._head += len(data)
        before = self._head
        super().data_received(data)
        # What came in one piece with the rest of a head counts as head: the bound is no exact length.
        if before is not None and self._head is not None and before > self._most_head:
            self._refuse(_TOO_LONG)
        elif not self._whole and self._watch is None and not self.transport.is_closing():
            self._start_watch()  # most requests come in one piece, and need none

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._whole, self._named = False, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._named += len(name) + len(value)
        if self._named > self._most_head:
            self._refuse(_TOO_LONG)

    def on_headers_complete(self) -> None:
        self._head = None
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():  # of a request that was refused nothing was made
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._whole = True
        self._end_watch()
        if not self.transport.is_closing():
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_watch()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - what the parser says of it helps nobody
        self._refuse(_NO_HTTP)

    def _start_watch(self) -> None:
        self._watch = self.loop.call_later(self._within, self._refuse, _TOO_SLOW)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _refuse(self, status: bytes) -> None:
        self._end_watch()
        if self.transport.is_closing():
            return
        body = _REFUSED % (status[4:], status[:3], str(uuid4()).encode())
        head = (
            b"HTTP/1.1 %s\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()
