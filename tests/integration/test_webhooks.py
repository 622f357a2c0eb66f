"""Webhooks end to end: named through the API, announced in a transaction, signed, tried again, parked, and sent back."""

from typing import TYPE_CHECKING

import pytest
from standardwebhooks.webhooks import Webhook

from models.announcement import Event
from models.database import driver
from tests.integration.hearing import hearing, point, put, run, say, state

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("security",))


async def test_a_delivery_is_signed_with_the_secret_that_was_shown_once(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    made = await put(client, key)
    assert made.status_code == 200, made.text
    assert "secret" not in await state(client, key)
    turned = await put(client, key, rotate=True)
    async with hearing() as hearer:
        webhook = await point(resources, key, hearer)
        await say(resources, key)
        await say(resources, key, Event.USAGE_CAPPED)  # it did not subscribe to that
        await run(resources, key, webhook)
    ((headers, body),) = hearer.heard
    for answer in (made, turned):
        said = Webhook(answer.json()["secret"]).verify(body, headers)
        assert (said["type"], said["data"]) == ("export.ready", {"export": "exp_1"})
    assert (await state(client, key))["delivered"] == 1


async def test_what_fails_is_tried_again_under_its_id_then_parked_and_sent_back(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key)
    async with hearing() as hearer:
        webhook, hearer.status = await point(resources, key, hearer), 500
        await say(resources, key)
        await run(resources, key, webhook)
        assert (await state(client, key))["waiting"] == 1
        async with resources.database.begin(key.space) as tx:
            await (await driver(tx)).execute(
                "UPDATE deliveries SET since = since - interval '1 day' WHERE webhook_id = $1", webhook
            )
        await run(resources, key, webhook)
        parked = await state(client, key)
        assert (parked["parked"], parked["last_error"]) == (1, "http_500")
        assert (await client.post("/v1/webhooks/crm/retry", headers=key.headers)).json() == {"retried": 1}
        hearer.status = 204
        await run(resources, key, webhook)
    assert (await state(client, key))["delivered"] == 1
    assert len({headers["webhook-id"] for headers, _ in hearer.heard}) == 1
    assert len(hearer.heard) == 3


async def test_an_endpoint_that_is_gone_is_disabled_and_removal_leaves_a_receipt(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key)
    async with hearing() as hearer:
        webhook, hearer.status = await point(resources, key, hearer), 410
        await say(resources, key)
        await run(resources, key, webhook)
    gone = await state(client, key)
    assert (gone["disabled"], gone["parked"]) == (True, 1)
    assert (await client.delete("/v1/webhooks/crm", headers=key.headers)).status_code == 204
    assert (await client.get("/v1/webhooks/crm", headers=key.headers)).status_code == 404
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch("SELECT action FROM receipts WHERE space_id = $1 ORDER BY at", key.space)
    assert [row["action"] for row in rows] == ["webhook.changed", "webhook.removed"]


@pytest.mark.parametrize("url", ["http://8.8.8.8/", "https://127.0.0.1/", "https://169.254.169.254/", "https://0/"])
async def test_an_address_of_our_own_network_is_refused(client: "httpx.AsyncClient", key: "Minted", url: str) -> None:
    refused = await put(client, key, url=url)
    assert (refused.status_code, refused.json()["code"]) == (422, "url_refused")


async def test_another_space_sees_none_of_it(client: "httpx.AsyncClient", key: "Minted", mint: "Mint") -> None:
    await put(client, key)
    other = await mint(scopes=("security",))
    assert (await client.get("/v1/webhooks/crm", headers=other.headers)).status_code == 404
    assert (await client.get("/v1/webhooks", headers=other.headers)).json() == {"webhooks": []}
