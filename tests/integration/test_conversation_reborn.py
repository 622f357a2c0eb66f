"""A conversation that was erased alone may begin anew; what is from before it is refused, whoever sends it again."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from api.app import create_app
from models.columns import utc_now
from models.database import driver

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Serving

    from config.settings import Settings
    from jobs.resources import Resources


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("turns:write", "memory:read", "operator"), admin=True, allow_impersonation=True)


async def say(
    client: "httpx.AsyncClient",
    key: "Minted",
    text: str,
    conversation: str = "c1",
    at: str | None = None,
    **headers: str,
) -> "httpx.Response":
    turn = {"role": "user", "content": text} | ({} if at is None else {"at": at})
    body = {"agent": "support", "conversation_id": conversation, "turns": [turn]}
    return await client.post("/v1/turns", json=body, headers=key.headers | {"X-Canonical-User": "ana"} | headers)


async def erase(client: "httpx.AsyncClient", key: "Minted", conversation: str = "c1") -> None:
    named = {"subject": {"handle_kind": "canonical_user", "handle": "ana"}, "conversation_id": conversation}
    asked = {"conversation": named, "reason_code": "subject_request"}
    assert (await client.post("/v1/erasures", json=asked, headers=key.headers)).status_code == 202


async def conversations(resources: "Resources", key: "Minted") -> list[Any]:
    async with resources.database.begin(key.space) as tx:
        query = "SELECT * FROM conversations WHERE space_id = $1 ORDER BY id"
        return list(await (await driver(tx)).fetch(query, key.space))


def refused(answer: "httpx.Response") -> bool:
    return (answer.status_code, answer.json().get("code")) == (409, "subject_erased")


async def test_what_was_said_before_is_refused_by_its_time_and_begins_nothing(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    before = utc_now().isoformat()
    await say(client, key, "I moved to Porto.", at=before)
    await say(client, key, "And another.", "c2")
    await erase(client, key)
    assert refused(await say(client, key, "I moved to Porto.", at=before))
    assert len(await conversations(resources, key)) == 1
    assert (await say(client, key, "elsewhere", "c2", at=before)).status_code == 202
    assert (await say(client, key, "elsewhere", "c3", at=before)).status_code == 202
    assert (await say(client, key, "I am back.")).status_code == 202
    assert (await say(client, key, "I am back.", at=(utc_now() + timedelta(seconds=1)).isoformat())).status_code == 202
    assert refused(await say(client, key, "I moved to Porto.", at=before))  # and after it began anew
    assert [row["reborn_at"] is not None for row in await conversations(resources, key)] == [False, False, True]


async def test_a_retry_by_its_idempotency_key_is_refused_and_a_new_call_is_not(
    client: "httpx.AsyncClient", key: "Minted"
) -> None:
    first, second = {"Idempotency-Key": "call-1"}, {"Idempotency-Key": "call-2"}
    await say(client, key, "I moved to Porto.", **first)
    await say(client, key, "Of another.", "c2", **second)
    await erase(client, key)
    for _ in range(2):
        assert refused(await say(client, key, "I moved to Porto.", **first))
    assert (await say(client, key, "I am back.", **{"Idempotency-Key": "call-3"})).status_code == 202
    assert refused(await say(client, key, "I moved to Porto.", **first))
    assert (await say(client, key, "Not of what was erased.", **second)).status_code == 202


async def test_another_process_refuses_it_as_well_and_a_second_erasure_counts_anew(
    client: "httpx.AsyncClient", serving: "Serving", settings: "Settings", key: "Minted"
) -> None:
    async with serving(create_app(settings)) as other:
        for process in (client, other):
            assert (await say(process, key, "hello")).status_code == 202
        before = utc_now().isoformat()
        await erase(client, key)
        assert refused(await say(other, key, "hello", at=before))
        assert (await say(other, key, "I am back.")).status_code == 202
        between = utc_now().isoformat()
        assert (await say(other, key, "I am back.", at=between)).status_code == 202
        await erase(client, key)
        assert refused(await say(other, key, "I am back.", at=between))
        assert (await say(other, key, "Once more.")).status_code == 202


async def test_the_calls_beside_a_refused_one_are_taken(client: "httpx.AsyncClient", key: "Minted") -> None:
    before = utc_now().isoformat()
    await say(client, key, "hello", at=before)
    await erase(client, key)
    answers = await asyncio.gather(
        *(say(client, key, "late", at=before) for _ in range(5)),
        *(say(client, key, "new", f"c-{number}", at=before) for number in range(20)),
    )
    assert [answer.status_code for answer in answers] == [409] * 5 + [202] * 20
