"""`afterturn mcp`: agent memory's tools on standard input and output, for hosts that start their servers themselves.

It holds a key of the API and nothing else: what a tool may do is decided where it is done, so a desk on which a model works needs
neither a database's password nor the master key.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from cli.failure import Failed, WrongUse
from cli.owner import check_agent
from cli.servers import read
from config.settings import default_data_dir

_KEY = "AFTERTURN_API_KEY"
_PATIENCE = 60.0  # seconds for one answer


def run(url: str | None, agent: str | None, data_dir: Path | None) -> None:
    """Serves until standard input ends."""
    key = os.environ.get(_KEY, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise WrongUse(f"{_KEY} is not set: it takes the secret of a key with agent_memory:read")
    if agent is not None:
        check_agent(agent, "--agent")
    asyncio.run(serve(place(url, data_dir), agent, key))


def place(url: str | None, data_dir: Path | None) -> str:
    """Where the API answers: what was said, else what runs in the data folder. Failed where nothing does."""
    if url is not None:
        if not url.startswith(("http://", "https://")):
            raise WrongUse("--url takes a URL that begins with http:// or https://")
        return url.rstrip("/")
    folder = data_dir or default_data_dir()
    servers = read(folder)
    if servers is None:
        raise Failed(f"nothing runs in {folder}: set AFTERTURN_URL, or start `afterturn up`")
    return servers.url


async def serve(url: str, agent: str | None, key: str) -> None:
    """Answers whatever comes on standard input by what the API at `url` answers; Failed where it lets nobody in."""
    try:
        async with _connected(url, agent, key) as api, stdio_server() as (said, told):
            server = passing_on(api)
            await server.run(said, told, server.create_initialization_options())
    except ExceptionGroup as several:  # task groups wrap what passes through them
        refused = several.subgroup(MCPError)
        if refused is None:
            raise
        raise Failed(f"{url} says: {_first(refused).message}") from None


def passing_on(api: Client) -> Server[Any]:
    """A server of the protocol whose every answer is the API's."""

    async def offer(_: object, __: PaginatedRequestParams | None) -> ListToolsResult:
        return await api.list_tools()

    async def call(_: object, said: CallToolRequestParams) -> CallToolResult:
        return await api.call_tool(said.name, said.arguments)

    server = Server(
        "afterturn",
        version=version("afterturn"),
        instructions=api.instructions,
        on_list_tools=offer,
        on_call_tool=call,
    )
    server.middleware.clear()  # its spans name what a model calls
    return server


@asynccontextmanager
async def _connected(url: str, agent: str | None, key: str) -> AsyncIterator[Client]:
    about = {"agent": agent} if agent else {}
    there = str(httpx2.URL(f"{url}/mcp", params=about))
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        _Patient(headers=headers, timeout=_PATIENCE, trust_env=not _is_here(url)) as http,
        Client(streamable_http_client(there, http_client=http)) as api,
    ):
        yield api


class _Patient(httpx2.AsyncClient):
    """Where nobody answers, that is one call's answer: the next one finds an API that was started again."""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            return await super().send(request, **how)
        except httpx2.TransportError:
            error = {"code": INTERNAL_ERROR, "message": "Nobody answers there: try again"}
            return httpx2.Response(503, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _first(several: ExceptionGroup[MCPError]) -> MCPError:
    error: Exception = several
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return cast("MCPError", error)


def _is_here(url: str) -> bool:
    return httpx2.URL(url).host in ("127.0.0.1", "localhost", "::1")  # a proxy would not reach it
