"""`afterturn mcp`: agent memory's tools on standard input and output, against an API on a socket."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from api.app import create_app
from cli.__main__ import run
from cli.failure import Failed
from cli.mcp import place
from cli.servers import Servers, announced
from tests.integration.notebook import STEPS, Notebook

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from config.settings import Settings
    from jobs.resources import Resources

Called = Callable[..., tuple[int, str]]

_NOTE = {name: STEPS[name] for name in ("kind", "title", "body", "tags")}


class Listening:
    """The API on a socket, in a thread of its own."""

    def __init__(self, settings: Settings, port: int = 0) -> None:
        config = uvicorn.Config(create_app(settings), port=port, ws="none", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.05)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def api(settings: Settings) -> Iterator[Listening]:
    listening = Listening(settings)
    yield listening
    listening.stop()


@pytest.fixture
async def key(client: httpx.AsyncClient, resources: Resources, mint: Mint) -> Minted:
    minted: Minted = await (await Notebook(client, resources, mint).open()).agent(None)
    return minted


@pytest.fixture
def called(api: Listening, key: Minted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """The command in this process, with a secret or the key's own: its exit code, and its standard error."""

    def call(secret: str | None, *arguments: str | None) -> tuple[int, str]:
        monkeypatch.setenv("AFTERTURN_URL", api.url)
        monkeypatch.setenv("AFTERTURN_API_KEY", key.secret if secret is None else secret)
        code = run(["mcp", *map(str, arguments)])
        told = capsys.readouterr()
        assert told.out == ""
        assert key.secret not in told.err
        return code, told.err

    return call


def started(url: str, key: Minted, *arguments: str) -> StdioServerParameters:
    """The command, as a host starts it."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path, "AFTERTURN_URL": url, "AFTERTURN_API_KEY": key.secret}
    return StdioServerParameters(command=sys.executable, args=["-m", "cli", "mcp", *arguments], env=env)


async def test_a_host_starts_it_and_a_model_uses_it_also_after_the_api_was_away(
    settings: Settings, key: Minted
) -> None:
    first = Listening(settings)
    async with Client(stdio_client(started(first.url, key, "--agent", "support"))) as model:
        assert [tool.name for tool in (await model.list_tools()).tools] == ["search_agent_memory", "remember"]
        assert "customers" in (model.instructions or "")
        refused = await model.call_tool("remember", _NOTE | {"body": "Ask ana.silva@example.org."})
        said = refused.content[0].text  # type: ignore[union-attr]  # it is text, or the test fails
        assert refused.is_error
        assert json.loads(said)["kinds"] == ["email_address"]
        assert "ana.silva" not in said
        first.stop()
        with pytest.raises(MCPError, match="Nobody answers"):
            await model.call_tool("remember", _NOTE)
        second = Listening(settings, first.port)
        kept = await model.call_tool("remember", _NOTE)
        assert not kept.is_error
        found = await model.call_tool("search_agent_memory", {"query": "credit"})
        second.stop()
    (note,) = json.loads(found.content[0].text)["notes"]  # type: ignore[union-attr]  # as above
    assert note == {"id": note["id"], **_NOTE}


@pytest.mark.parametrize(
    ("said", "code", "says"),
    [
        (("",), 2, "AFTERTURN_API_KEY is not set"),
        (("at_nobody",), 1, "An API key is needed"),
        ((None,), 1, "agent is missing"),  # its key is of no one agent
        ((None, "--agent", "no such agent"), 2, "--agent takes"),
        ((None, "--url", "memory.example"), 2, "http://"),
        ((None, "--url", "http://127.0.0.1:1"), 1, "Nobody answers"),
    ],
)
def test_what_cannot_be_served_ends_with_one_line_that_says_why(
    called: Called, said: tuple[str | None, ...], code: int, says: str
) -> None:
    secret, *arguments = said
    done, told = called(secret, *arguments)
    assert done == code
    assert says in told
    assert told.count("\n") == 1


def test_without_a_url_it_is_what_runs_in_the_data_folder(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="AFTERTURN_URL"):
        place(None, tmp_path)
    with announced(tmp_path, Servers("http://127.0.0.1:8400", "data", "bell", "keys", "file", {})):
        assert place(None, tmp_path) == "http://127.0.0.1:8400"
        assert place("https://memory.example/", tmp_path) == "https://memory.example"
