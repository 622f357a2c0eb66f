"""A space masks by its own rules, and every process goes by a change within a second."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from models.database import driver
from models.turn import SEALED_TURN

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

ROUTE = "/v1/policies/masking"
Within = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("turns:write", "memory:read", "security"))


async def said(client: "httpx.AsyncClient", resources: "Resources", key: "Minted", text: str) -> str:
    """What is stored of a turn."""
    body = {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": text}]}
    assert (await client.post("/v1/turns", json=body, headers=key.headers)).status_code == 202
    async with resources.database.begin(key.space) as tx:
        row = await (await driver(tx)).fetchrow(
            "SELECT subject_id, sealed FROM turns WHERE space_id = $1 ORDER BY id DESC LIMIT 1", key.space
        )
    stored = (await resources.keys.key(row["subject_id"])).open(row["sealed"], SEALED_TURN)
    kept: str = json.loads(stored)["text"]
    return kept


async def receipts_of(resources: "Resources", key: "Minted", action: str) -> list[Any]:
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch(
            "SELECT actor, ids::text AS ids FROM receipts WHERE space_id = $1 AND action = $2", key.space, action
        )
    return [(row["actor"], row["ids"]) for row in rows]


async def within_a_second(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(1.5):  # the promise is a time: there is no event to wait for
        while not await holds():  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.05)


async def test_a_change_is_versioned_receipted_and_gone_by_within_a_second(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    assert await said(client, resources, key, "write to ana@example.org") == "write to <EMAIL_ADDRESS>"
    for version in (1, 2):
        answer = await client.put(ROUTE, json={"operators": {"EMAIL_ADDRESS": "hash"}}, headers=key.headers)
        assert (answer.status_code, answer.json()["version"]) == (200, version)
    assert (await client.get(ROUTE, headers=key.headers)).json() == answer.json()

    async def hashed() -> bool:
        return "<EMAIL_ADDRESS:" in await said(client, resources, key, "write to ana@example.org")

    await within_a_second(hashed)
    one, two = [await said(client, resources, key, f"{word} ana@example.org") for word in ("to", "to")]
    assert one == two
    written = await receipts_of(resources, key, "masking.changed")
    assert written == [(key.id, '{"version": 1}'), (key.id, '{"version": 2}')]


async def test_another_space_masks_as_before(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    other = await mint(scopes=("turns:write",))
    await client.put(ROUTE, json={"operators": {"EMAIL_ADDRESS": "keep"}}, headers=key.headers)

    async def kept() -> bool:
        return await said(client, resources, key, "ana@example.org") == "ana@example.org"

    await within_a_second(kept)
    assert await said(client, resources, other, "ana@example.org") == "<EMAIL_ADDRESS>"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"operators": {"EMAIL_ADDRESS": "shout"}}, "operators.EMAIL_ADDRESS"),
        ({"operators": {"ana@example.org": "keep"}}, "operators"),
        ({"regions": ["US", "XX"]}, "regions[1]"),
        ({"regions": ["US", "US"]}, "regions[1]"),
    ],
)
async def test_what_is_no_policy_is_refused_by_its_path_and_changes_nothing(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", document: dict[str, Any], path: str
) -> None:
    answer = await client.put(ROUTE, json=document, headers=key.headers)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
    assert "ana@example.org" not in answer.text
    assert (await client.get(ROUTE, headers=key.headers)).json()["version"] == 0
    assert await receipts_of(resources, key, "masking.changed") == []


async def test_features_stay_where_they_are_not_named_and_open_contexts_within_a_second(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    personal = {"agent": "support", "context": "personal"}
    before = await client.post("/v1/observations/read", json=personal, headers=key.headers)
    assert before.status_code == 422
    await client.put("/v1/features", json={"phone_regions": ["PT"]}, headers=key.headers)
    answer = await client.put("/v1/features", json={"contexts": True}, headers=key.headers)
    assert (answer.json()["contexts"], answer.json()["phone_regions"]) == (True, ["PT"])
    assert (await client.get("/v1/features", headers=key.headers)).json() == answer.json()
    assert (await client.get(ROUTE, headers=key.headers)).json()["regions"] == ["PT"]

    async def opened() -> bool:
        return (await client.post("/v1/observations/read", json=personal, headers=key.headers)).status_code == 200

    await within_a_second(opened)
    written = await receipts_of(resources, key, "features.changed")
    assert written == [(key.id, '{"features": ["phone_regions"]}'), (key.id, '{"features": ["contexts"]}')]


@pytest.mark.parametrize("said", [{"contexts": None}, {"phone_regions": ["XX"]}, {"note_ceiling": 0}, {"shoes": True}])
async def test_features_of_another_shape_are_refused(
    client: "httpx.AsyncClient", key: "Minted", said: dict[str, Any]
) -> None:
    assert (await client.put("/v1/features", json=said, headers=key.headers)).status_code == 422
