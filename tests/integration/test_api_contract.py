"""What the OpenAPI document says is what the API does: schemathesis asks every route, in every way that it knows."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn

from api.app import create_app
from api.bounded import bounded
from config.settings import Packages
from models.api_key import Scope

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from config.settings import Settings

# Drawn at random for each route, beside the 2,900 requests of every run; by hand, hundreds: see the first lines of _RULES.
_EXAMPLES = os.environ.get("AFTERTURN_TEST_EXAMPLES", "1")
_LONGEST = 300 + 20 * int(_EXAMPLES)  # seconds on a machine that has much else to do: it is a minute of one processor's
_RULES = Path(__file__).parents[1] / "fixtures" / "schemathesis.toml"


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=tuple(Scope), admin=True, allow_impersonation=True, contexts=True)


@pytest.fixture
def address(settings: "Settings", tmp_path: Path) -> Iterator[str]:
    """The API on a socket, in a thread of its own."""
    packages = Packages(packages_url=(tmp_path / "packages").as_uri())  # type: ignore[arg-type]  # pydantic reads it
    app = create_app(settings.model_copy(update={"packages": packages}))
    wire = bounded(settings.http.max_head, settings.http.read_within.total_seconds())
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=wire, ws="none", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.timeout(2 * _LONGEST)
async def test_every_route_does_what_the_document_says(
    address: str, key: "Minted", client: "httpx.AsyncClient", tmp_path: Path
) -> None:
    features = {"agent_memory": True, "agent_state": True, "contexts": True}
    assert (await client.put("/v1/features", json=features, headers=key.headers)).status_code == 200
    # Apart and last, for it turns off what the other routes are about.
    for which in (("--exclude-path", "/v1/features"), ("--include-path", "/v1/features")):
        told = await asyncio.to_thread(_asked, address, key.secret, which, tmp_path)
        assert re.search(r"[1-9]\d* generated, [1-9]\d* passed", told), told


def _asked(address: str, secret: str, which: tuple[str, str], place: Path) -> str:
    """What schemathesis says; it leaves its notes in `place`."""
    command = ("--config-file", str(_RULES), "run", f"{address}/openapi.json", *which)
    bounds = ("--max-examples", _EXAMPLES, "--seed", "1")
    named = ("--header", f"Authorization: Bearer {secret}", "--no-color")
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", *command, *bounds, *named],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
