"""Webhooks end to end: named through the API, announced in a transaction, signed, tried again, parked, and sent back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from standardwebhooks.webhooks import Webhook

from jobs.deliver import deliver
from jobs.letters import deliver_letter
from models import webhook as webhooks
from models.announcement import Event, announce
from models.database import driver
from models.work import Claim, add

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


class Hearer:
    """An endpoint; `status` is what it answers."""

    def __init__(self) -> None:
        self.status, self.port = 200, 0
        self.heard: list[tuple[dict[str, str], bytes]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.heard.append((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def hearing() -> AsyncIterator[Hearer]:
    hearer = Hearer()
    async with await asyncio.start_server(hearer.answer, "127.0.0.1", 0) as server:
        hearer.port = server.sockets[0].getsockname()[1]
        yield hearer


class Allowing:
    """A workshop whose settings let webhooks go to loopback."""

    def __init__(self, resources: "Resources") -> None:
        self.database, self.keys = resources.database, resources.keys
        self.settings = _allowing(resources.settings)


def _allowing(settings: Any) -> Any:
    return settings.model_copy(
        update={"webhooks": settings.webhooks.model_copy(update={"webhooks_allow_private": True})}
    )


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("security",))


async def put(client: "httpx.AsyncClient", key: "Minted", **body: Any) -> "httpx.Response":
    return await client.put("/v1/webhooks/crm", json=body, headers=key.headers)


async def point(resources: "Resources", key: "Minted", hearer: Hearer) -> UUID:
    """Points the endpoint at the hearer past the API, which refuses loopback here."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        lookup = await connection.fetchval("SELECT lookup_key FROM spaces WHERE id = $1", key.space)
        sealing = await resources.keys.key(lookup)
        url = sealing.seal(f"http://127.0.0.1:{hearer.port}/in", webhooks.SEALED_URL)
        found: UUID = await connection.fetchval(
            "UPDATE webhooks SET url = $2 WHERE space_id = $1 RETURNING id", key.space, url
        )
    return found


async def say(resources: "Resources", key: "Minted", event: Event = Event.EXPORT_READY) -> None:
    async with resources.database.begin(key.space) as tx:
        await announce(await driver(tx), key.space, event, {"export": "exp_1"})


async def run(resources: "Resources", key: "Minted", webhook: UUID) -> None:
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await connection.execute("UPDATE webhooks SET resume_at = now() WHERE id = $1", webhook)
        added = await add(connection, deliver_letter(key.space, webhook))
        assert added is not None
        row = await connection.fetchrow(
            "UPDATE work SET state = 'claimed', epoch = epoch + 1, claimed_until = now() + interval '1 minute'"
            " WHERE id = $1 RETURNING id, epoch, kind, queue_class, space_id, scope, payload::text",
            added.id,
        )
    payload = json.loads(row["payload"])
    named = (row["id"], row["epoch"], row["kind"], row["queue_class"], row["space_id"], row["scope"])
    await deliver([Claim(*named, 1, 0, 0, payload, {})], Allowing(resources))  # type: ignore[arg-type] # what it needs


async def state(client: "httpx.AsyncClient", key: "Minted") -> dict[str, Any]:
    shown: dict[str, Any] = (await client.get("/v1/webhooks/crm", headers=key.headers)).json()
    return shown


async def test_a_delivery_is_signed_with_the_secret_that_was_shown_once(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    made = await put(client, key, url="https://8.8.8.8/in", events=["export.ready"])
    assert made.status_code == 200, made.text
    assert "secret" not in await state(client, key)
    turned = await put(client, key, url="https://8.8.8.8/in", events=["export.ready"], rotate=True)
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
    await put(client, key, url="https://8.8.8.8/in", events=["export.ready"])
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
    await put(client, key, url="https://8.8.8.8/in", events=["export.ready"])
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
    refused = await put(client, key, url=url, events=["export.ready"])
    assert (refused.status_code, refused.json()["code"]) == (422, "url_refused")


async def test_another_space_sees_none_of_it(client: "httpx.AsyncClient", key: "Minted", mint: "Mint") -> None:
    await put(client, key, url="https://8.8.8.8/in", events=["export.ready"])
    other = await mint(scopes=("security",))
    assert (await client.get("/v1/webhooks/crm", headers=other.headers)).status_code == 404
    assert (await client.get("/v1/webhooks", headers=other.headers)).json() == {"webhooks": []}
