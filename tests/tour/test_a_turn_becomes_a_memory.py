"""The product's story, told once from end to end: a chat server's turns become a memory that the next prompt reads.

Real PostgreSQL, real Valkey, the real API and a real worker; the built-in model thinks.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from config.settings import Settings
    from jobs.resources import Resources

MONDAY = [
    {
        "id": "m-1",
        "role": "user",
        "content": "Hi, I'm Ana. I moved to Porto last week.",
        "at": "2026-03-02T10:15:00+00:00",
    },
    {"id": "m-2", "role": "assistant", "content": "Noted. Anything else?", "at": "2026-03-02T10:15:04+00:00"},
    {
        "id": "m-3",
        "role": "user",
        "content": "My new e-mail is ana.lima@example.com, and please always answer me in Portuguese.",
        "at": "2026-03-02T10:16:00+00:00",
    },
    {"id": "m-4", "role": "system", "content": "Be brief.", "at": "2026-03-02T10:16:01+00:00"},
]
SECRET = {
    "id": "m-5",
    "role": "user",
    "content": "Off the record: I dislike my boss.",
    "at": "2026-03-02T10:17:00+00:00",
}


@pytest.fixture
async def working(settings: "Settings", resources: "Resources") -> AsyncIterator[None]:
    """One worker and one scheduler, as their processes run them."""
    from jobs.resources import furnished
    from scheduler.__main__ import JOBS
    from scheduler.reconciler import run_scheduler
    from scheduler.worker import Staffing, run_worker

    stop = asyncio.Event()
    redis = settings.stores.redis_url.get_secret_value()
    staffing = Staffing(grace=timedelta(seconds=5))
    async with furnished(resources) as workshop, asyncio.TaskGroup() as tasks:
        tasks.create_task(run_worker(resources.database, redis, JOBS, workshop, stop, staffing))
        tasks.create_task(run_scheduler(resources.database, resources.bell, JOBS, stop))
        yield
        stop.set()


async def until(
    ask: Callable[[], Awaitable[dict[str, Any]]], holds: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Asks until the answer is as expected, for half a minute at most."""
    async with asyncio.timeout(30):
        while not holds(answer := await ask()):  # noqa: ASYNC110 - HTTP has no event: a chat server polls too
            await asyncio.sleep(0.05)
    return answer


async def test_the_story(client: "httpx.AsyncClient", working: None, mint: Any) -> None:
    # A backend that serves many people names the person on each call; its key was minted to be allowed to.
    key = await mint(owner="the-backend", admin=True, allow_impersonation=True)
    ana = {**key.headers, "X-Canonical-User": "customer:ana"}
    agent = {"agent": "support"}

    async def post(path: str, body: dict[str, Any], headers: dict[str, str] = ana) -> dict[str, Any]:
        answer = await client.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        taken: dict[str, Any] = answer.json()
        return taken

    # One call after the turns. It answers once they are committed, and says whose memory they belong to.
    said = await post("/v1/turns", {**agent, "conversation_id": "case-4471", "turns": MONDAY})
    assert (said["accepted"], said["duplicates"]) == (4, 0)
    assert said["memory_identity"]["kind"] == "canonical_user"

    # The same call again, after a network error say, stores nothing twice.
    again = await post("/v1/turns", {**agent, "conversation_id": "case-4471", "turns": MONDAY})
    assert (again["accepted"], again["duplicates"]) == (0, 4)

    # A turn that must not be remembered is kept for replay, and from every model.
    await post("/v1/turns", {**agent, "conversation_id": "case-4471", "no_memory": True, "turns": [SECRET]})

    # Nothing is observed yet, and the service says why.
    coverage = await post("/v1/coverage/read", agent)
    assert coverage["turns"]["pending"] == 3
    assert coverage["turns"]["skipped"] == 2
    assert "of 8,000 tokens" in coverage["why_not_yet"]

    # Asked for, it is observed now; each turn is accounted for.
    await post("/v1/observations/flush", agent)
    coverage = await until(lambda: post("/v1/coverage/read", agent), lambda now: now["turns"]["pending"] == 0)
    assert coverage["turns"]["observed"] == 3

    # The memory: dated facts. What was personal was masked before it was stored; what was off the record is not there.
    memory = await post("/v1/observations/read", {**agent, "format": "json"})
    text = " ".join(line["text"] for line in memory["observations"])
    assert "Porto" in text
    assert "ana.lima@example.com" not in text
    assert "boss" not in text
    moved = next(line for line in memory["observations"] if "Porto" in line["text"])
    assert moved["refers_to"] == {"start": "2026-02-23", "end": "2026-03-01"}  # "last week", seen from 2 March 2026

    # One call before the next prompt, in another conversation. The same bytes until something changes.
    ask = {**agent, "conversation_id": "case-9000", "token_budget": 500}
    context = await post("/v1/context", ask)
    assert "Porto" in str(context)
    assert await post("/v1/context", ask) == context

    # Another person of the same backend reads nothing of it.
    bob = {**key.headers, "X-Canonical-User": "customer:bob"}
    assert (await post("/v1/observations/read", {**agent, "format": "json"}, bob))["observations"] == []
