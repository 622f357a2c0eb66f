"""An agent's block, unchanged, against a handler that commits one row and returns the same bytes: the 99th percentile.

Both stand in one process behind one server, and are asked in turns over one connection each.
"""

import argparse
import asyncio
import multiprocessing
import socket
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from api.app import create_app
from api.bounded import bounded
from bench.report import percentile, remark, tell
from bench.service import OFFLINE, Service, run, service
from cli import keys, spaces
from config.settings import Settings
from intake import notes
from memory.note import Draft, NoteKind
from models import policy
from models.database import driver
from models.note import Reader

_BLOCK, _PEER = "/v1/agent-memory/block?agent=support&budget=300", "/peer"
_NOTES, _A_ROUND, _WARM = 200, 200, 100
_SCOPES = "agent_memory:read,agent_memory:write"


async def measure(rounds: int) -> dict[str, object]:
    """Calls in short turns, so that whatever else runs weighs on both."""
    async with service(**OFFLINE) as there:
        secret = await _filled(there)
        async with _serving(there.settings) as port:
            return await asyncio.to_thread(_compared, port, secret, rounds)


async def _filled(there: Service) -> str:
    """A space with notes; answers a key's secret."""
    minted = await keys.mint(there.resources, keys.Wanted(spaces.DEFAULT, "bench", _SCOPES))
    place = await spaces.find(there.resources.database, spaces.DEFAULT)
    async with there.resources.database.begin(place.id) as tx:
        connection = await driver(tx)
        await policy.change_features(connection, place.id, {"agent_memory": True})
        await connection.execute("CREATE TABLE bench_rows (at timestamptz DEFAULT now(), said text)")
        for number in range(_NOTES):
            draft = Draft(NoteKind.TOOL_NOTE, f"The endpoint {number}", f"It wants {number} in its header.", ("http",))
            await notes.create(connection, Reader(place.id, "support"), draft, None, minted.id)
    return minted.secret


@asynccontextmanager
async def _serving(settings: Settings) -> AsyncIterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = int(listening.getsockname()[1])
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(settings, port), daemon=True)
    process.start()
    try:
        await asyncio.to_thread(_until_open, port)
        yield port
    finally:
        process.terminate()
        await asyncio.to_thread(process.join)


def _serve(settings: Settings, port: int) -> None:
    app = create_app(settings)
    app.add_route(_PEER, _answer)
    http = bounded(settings.http.max_head, settings.http.read_within.total_seconds())
    uvicorn.run(app, port=port, loop="uvloop", http=http, ws="none", access_log=False, log_config=None)


async def _answer(request: Request) -> Response:
    app: FastAPI = request.app
    desk: Any = app.state.desk
    async with desk.resources.database.pool.acquire() as connection:
        await connection.execute("INSERT INTO bench_rows (said) VALUES ($1)", "read")
    (_, given), *_ = desk.blocks._known.values()  # noqa: SLF001 - the same bytes
    return Response(given.body, media_type="application/json")


def _until_open(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the server does not open")


def _compared(port: int, secret: str, rounds: int) -> dict[str, object]:
    paths = {"ours": _BLOCK, "peer": _PEER}
    bodies = [_asked(port, path, secret, _WARM)[1] for path in paths.values()]
    assert bodies[0] == bodies[1], "the two must answer the same bytes"
    took: dict[str, list[list[float]]] = {"ours": [], "peer": []}
    for number in range(rounds):
        for name in list(paths)[:: 1 if number % 2 else -1]:
            took[name].append(_asked(port, paths[name], secret, _A_ROUND)[0])
        told = [f"{name} {1000 * percentile(times[-1], 0.99):.2f} ms" for name, times in took.items()]
        remark(f"round {number + 1}: p99 {', '.join(told)}")
    every = {name: [one for times in lists for one in times] for name, lists in took.items()}
    return {
        "calls": rounds * _A_ROUND,
        "bytes": len(bodies[0]),
        **{f"p99_ms_{name}": round(1000 * percentile(times, 0.99), 2) for name, times in every.items()},
        **{f"p50_ms_{name}": round(1000 * percentile(times, 0.5), 2) for name, times in every.items()},
        "ratio_p99": round(percentile(every["ours"], 0.99) / percentile(every["peer"], 0.99), 2),
        "ratio_p50": round(statistics.median(every["ours"]) / statistics.median(every["peer"]), 2),
    }


def _asked(port: int, path: str, secret: str, calls: int) -> tuple[list[float], bytes]:
    """The seconds of each call, one after another over one connection, and the last body."""
    said = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
    took, body = list[float](), b""
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(calls):
            began = time.perf_counter()
            wire.sendall(said)
            body = _answered(wire)
            took.append(time.perf_counter() - began)
    return took, body


def _answered(wire: socket.socket) -> bytes:
    came = b""
    while True:
        more = wire.recv(65_536)
        if not more:
            raise ConnectionError("the server closed the connection")
        came += more
        head, found, body = came.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            assert head.startswith(b"HTTP/1.1 200"), head
            return body


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.block", description=__doc__)
    parser.add_argument("--long", action="store_true", help="more rounds")
    rounds = 60 if parser.parse_args().long else 15

    async def bench() -> None:
        tell("block", "ratio_p99 <= 2", **await measure(rounds))

    run(bench)


if __name__ == "__main__":
    main()
