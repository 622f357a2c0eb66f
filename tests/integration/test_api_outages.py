import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx
    from conftest import Mint, Servers, Serving

    from config.settings import Settings


@pytest.fixture
async def apart(settings: "Settings", serving: "Serving") -> "AsyncIterator[httpx.AsyncClient]":
    """An API of this test's own: its bell and its probes remember nothing."""
    from api.app import create_app

    async with serving(create_app(settings)) as served:
        yield served


def turns(number: int, words: int = 1) -> dict[str, Any]:
    said = [{"role": "user", "content": "word " * words}]
    return {"agent": "support", "conversation_id": f"c-{number}", "turns": said}


async def readiness(client: "httpx.AsyncClient", expected: str) -> dict[str, Any]:
    """The answer of the probe, once it has come to what is expected; it is asked anew every second."""
    async with asyncio.timeout(20):
        while (said := (await client.get("/readyz")).json())["status"] != expected:  # noqa: ASYNC110 - HTTP has no event
            await asyncio.sleep(0.05)
    checks: dict[str, Any] = said["checks"]
    return checks


async def test_probes_say_what_answers(apart: "httpx.AsyncClient") -> None:
    assert (await apart.get("/healthz")).json() == {"status": "alive"}
    ready = await apart.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["checks"] == dict.fromkeys(("database", "key_store", "schema", "erasures", "redis"), "ok")


async def test_without_redis_turns_are_taken_and_nobody_waits_for_it(
    apart: "httpx.AsyncClient", mint: "Mint", servers: "Servers"
) -> None:
    key = await mint()
    servers.valkey.kill()
    try:
        began = time.monotonic()
        # each is past the threshold: each would ring
        calls = [apart.post("/v1/turns", json=turns(number, 8_001), headers=key.headers) for number in range(20)]
        answers = await asyncio.gather(*calls)
        flushed = await apart.post("/v1/observations/flush", json={"agent": "support"}, headers=key.headers)
        took = time.monotonic() - began
        assert {answer.status_code for answer in [*answers, flushed]} == {202}
        assert took < 10
        checks = await readiness(apart, "degraded")
        assert checks == {"database": "ok", "key_store": "ok", "schema": "ok", "erasures": "ok", "redis": "down"}
        assert (await apart.get("/readyz")).status_code == 200
        (missed,) = (
            line for line in (await apart.get("/metrics")).text.splitlines() if line.startswith("afterturn_bells")
        )
        assert float(missed.split()[1]) >= 1
    finally:
        servers.valkey.restart()
    await readiness(apart, "ready")


async def test_without_postgresql_the_caller_is_told_to_try_again_and_later_it_works(
    apart: "httpx.AsyncClient", mint: "Mint", servers: "Servers"
) -> None:
    key = await mint()
    assert (await apart.post("/v1/turns", json=turns(1), headers=key.headers)).status_code == 202
    servers.data.kill()
    try:
        reads = await apart.post("/v1/coverage/read", json={"agent": "support"}, headers=key.headers)
        writes = await apart.post("/v1/turns", json=turns(2), headers=key.headers)
        for answer in (reads, writes):
            assert answer.status_code == 503, answer.text
            assert (answer.json()["code"], answer.headers["retry-after"]) == ("unavailable", "1")
        checks = await readiness(apart, "unready")
        assert checks["database"] == "down"
        assert (await apart.get("/readyz")).status_code == 503
        assert (await apart.get("/healthz")).status_code == 200
    finally:
        servers.data.restart()
    await readiness(apart, "ready")
    assert (await apart.post("/v1/turns", json=turns(2), headers=key.headers)).status_code == 202
    covered = await apart.post("/v1/coverage/read", json={"agent": "support"}, headers=key.headers)
    assert covered.json()["turns"]["pending"] == 2


async def test_without_the_key_store_nothing_is_stored_unsealed(
    apart: "httpx.AsyncClient", mint: "Mint", servers: "Servers"
) -> None:
    key = await mint(owner="new", admin=True, allow_impersonation=True)
    servers.keys.kill()
    try:
        headers = key.headers | {"X-Canonical-User": "nobody-yet"}
        answer = await apart.post("/v1/turns", json=turns(1), headers=headers)
        assert answer.status_code == 503
        assert (await readiness(apart, "unready"))["key_store"] == "down"
    finally:
        servers.keys.restart()
    await readiness(apart, "ready")
    assert (await apart.post("/v1/turns", json=turns(1), headers=headers)).status_code == 202
