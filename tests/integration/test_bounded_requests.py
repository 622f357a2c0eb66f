"""Whoever sends heads without end, or a byte now and then, is let go; whoever is merely quick is not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from api.bounded import Joined, bounded

WITHIN, HEAD = 0.6, 2_000  # seconds, bytes; a busy machine may hold everything up for a while


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    await PlainTextResponse(f"{len(await request.body())}")(scope, receive, send)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(
        echo, port=0, http=bounded(HEAD, WITHIN), ws="none", lifespan="off", log_config=None, timeout_keep_alive=5
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def sent(port: int, *pieces: bytes) -> bytes:
    """All that the server answers, until it lets go. The next piece goes when nothing has come back to the last one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    for piece in pieces:
        writer.write(piece)
        with contextlib.suppress(TimeoutError):
            answer += await asyncio.wait_for(reader.read(1_000), 0.02)
        if answer:
            break
    answer += await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


async def test_a_head_without_end_is_refused(port: int) -> None:
    lines = [b"X-A: " + b"a" * 500 + b"\r\n"] * 20
    assert (await sent(port, b"GET / HTTP/1.1\r\n", *lines)).startswith(b"HTTP/1.1 431 ")


async def test_one_header_without_end_is_refused(port: int) -> None:
    assert (await sent(port, b"GET / HTTP/1.1\r\nX-A: ", *[b"a" * 700] * 6)).startswith(b"HTTP/1.1 431 ")


async def test_a_long_head_in_one_piece_is_refused(port: int) -> None:
    head = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 300) for n in range(20)) + b"\r\n"
    assert (await sent(port, head)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"])
async def test_a_request_that_does_not_arrive_is_given_up(port: int, said: bytes) -> None:
    began = asyncio.get_running_loop().time()
    assert (await sent(port, said)).startswith(b"HTTP/1.1 408 ")
    assert asyncio.get_running_loop().time() - began < 4


async def test_requests_one_after_another_each_have_their_time(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(6):  # together longer than one may take
        body = b"x" * number
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (number, body))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(1) == str(number).encode()
        await asyncio.sleep(WITHIN / 4)
    writer.close()


async def test_requests_in_one_piece_are_all_answered(port: int) -> None:
    one = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    last = one.replace(b"Host", b"Connection: close\r\nHost")
    answer = await sent(port, one + one + last)
    assert answer.count(b"HTTP/1.1 200 ") == 3


async def test_a_long_head_with_its_body_in_one_piece_is_refused_once(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 300) for n in range(20))
    answer = await sent(port, head + b"Content-Length: 3\r\n\r\nabc")
    assert (answer[:12], answer.count(b"HTTP/1.1")) == (b"HTTP/1.1 431", 1)
    assert caplog.records == []


async def test_a_request_that_begins_behind_a_whole_one_has_its_time_too(port: int) -> None:
    one = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(one + one[:20])
    answer = await asyncio.wait_for(reader.read(), 5)
    assert (answer[:12], answer.count(b"HTTP/1.1 408 ")) == (b"HTTP/1.1 200", 1)
    writer.close()


class Wire:
    def __init__(self) -> None:
        self.said: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def close(self) -> None:
        self.said.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.said


async def test_an_answer_is_written_at_once_and_nothing_stays_held() -> None:
    wire = Wire()
    joined = Joined(wire, asyncio.get_running_loop())  # type: ignore[arg-type]  # as much of one as is asked for
    joined.write(b"head ")
    joined.write(b"body")
    joined.write(b"more")
    assert wire.said == [b"head body"]
    await asyncio.sleep(0)
    assert wire.said == [b"head body", b"more"]
    joined.write(b"last")
    joined.close()
    assert wire.said[2:] == [b"last", "closed"]
    assert joined.is_closing()
