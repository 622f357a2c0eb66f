"""With Redis stopped, states are read and written all the same."""

from typing import TYPE_CHECKING

import pytest

from tests.integration.test_agent_state import ASSISTANT, SCOPES, Code

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx
    from conftest import Mint, Servers, Serving

    from config.settings import Settings


@pytest.fixture
async def code(settings: "Settings", serving: "Serving", mint: "Mint") -> "AsyncIterator[Code]":
    """Code that talks with an API of this test's own, and has a state."""
    from api.app import create_app

    async with serving(create_app(settings)) as apart:
        made = Code(apart, await mint(scopes=SCOPES))
        features: httpx.Response = await apart.put("/v1/features", json={"agent_state": True}, headers=made.key.headers)
        assert features.status_code == 200
        assert (await made.declare(ASSISTANT)).status_code == 200
        assert (await made.put({"step": "sizes"})).json()["version"] == 1
        yield made


async def test_without_redis_reads_and_writes_go_on(code: Code, servers: "Servers") -> None:
    servers.valkey.kill()
    try:
        assert (await code.put({"step": "pay"})).json()["version"] == 2
        assert (await code.get())["body"] == {"step": "pay"}
    finally:
        servers.valkey.restart()
