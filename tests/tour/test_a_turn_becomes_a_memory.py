"""The product's story, told once from end to end: a chat server's turns become a memory that the next prompt reads.

Real PostgreSQL, real Valkey, the real API and a real worker; the built-in model thinks.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Person:
    """One customer of a backend that serves many: the backend names the person on each call."""

    client: "httpx.AsyncClient"
    headers: dict[str, str]

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(f"/v1/{path}", json={"agent": "support", **body}, headers=self.headers)
        assert answer.is_success, answer.text
        taken: dict[str, Any] = answer.json()
        return taken

    async def memory(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = (await self.post("observations/read", format="json"))["observations"]
        return lines


async def test_the_story(client: "httpx.AsyncClient", working: None, mint: Any) -> None:
    # The backend's key was minted to be allowed to name people.
    key = await mint(owner="the-backend", admin=True, allow_impersonation=True)
    ana = Person(client, {**key.headers, "X-Canonical-User": "customer:ana"})
    bob = Person(client, {**key.headers, "X-Canonical-User": "customer:bob"})
    await turns_are_taken(ana)
    await nothing_is_observed_yet(ana)
    await asked_for_it_is_observed(ana)
    await the_memory_is_dated_facts(ana)
    await the_next_prompt_reads_it(ana)
    # Another person of the same backend reads nothing of it.
    assert await bob.memory() == []


async def turns_are_taken(ana: Person) -> None:
    # One call after the turns. It answers once they are committed, and says whose memory they belong to.
    said = await ana.post("turns", conversation_id="case-4471", turns=MONDAY)
    assert (said["accepted"], said["duplicates"]) == (4, 0)
    assert said["memory_identity"]["kind"] == "canonical_user"
    # The same call again, after a network error say, stores nothing twice.
    again = await ana.post("turns", conversation_id="case-4471", turns=MONDAY)
    assert (again["accepted"], again["duplicates"]) == (0, 4)
    # A turn that must not be remembered is kept for replay, and from every model.
    await ana.post("turns", conversation_id="case-4471", no_memory=True, turns=[SECRET])


async def nothing_is_observed_yet(ana: Person) -> None:
    # And the service says why.
    coverage = await ana.post("coverage/read")
    assert coverage["turns"]["pending"] == 3
    assert coverage["turns"]["skipped"] == 2
    assert "of 8,000 tokens" in coverage["why_not_yet"]


async def asked_for_it_is_observed(ana: Person) -> None:
    # Each turn is accounted for.
    await ana.post("observations/flush")
    coverage = await until(lambda: ana.post("coverage/read"), lambda now: now["turns"]["pending"] == 0)
    assert coverage["turns"]["observed"] == 3


async def the_memory_is_dated_facts(ana: Person) -> None:
    # What was personal was masked before it was stored; what was off the record is not there.
    lines = await ana.memory()
    text = " ".join(line["text"] for line in lines)
    assert "Porto" in text
    assert "ana.lima@example.com" not in text
    assert "boss" not in text
    moved = next(line for line in lines if "Porto" in line["text"])
    assert moved["refers_to"] == {"start": "2026-02-23", "end": "2026-03-01"}  # "last week", seen from 2 March 2026
    assert [(turn["conversation_id"], turn["message_id"]) for turn in moved["evidence"]] == [("case-4471", "m-1")]


async def the_next_prompt_reads_it(ana: Person) -> None:
    # One call before it, in another conversation. The same bytes until something changes.
    ask = {"conversation_id": "case-9000", "token_budget": 500}
    context = await ana.post("context", **ask)
    assert "Porto" in str(context)
    assert await ana.post("context", **ask) == context


async def until(
    ask: Callable[[], Awaitable[dict[str, Any]]], holds: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Asks until the answer is as expected, for half a minute at most."""
    async with asyncio.timeout(30):
        while not holds(answer := await ask()):  # noqa: ASYNC110 - HTTP has no event: a chat server polls too
            await asyncio.sleep(0.05)
    return answer
