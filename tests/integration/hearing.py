"""Webhooks driven by hand: an endpoint that listens, and deliveries run as a worker runs them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from jobs.deliver import deliver
from jobs.letters import deliver_letter
from models import webhook as webhooks
from models.announcement import Event, announce
from models.database import driver
from models.work import Claim, add

if TYPE_CHECKING:
    import httpx
    from conftest import Minted

    from jobs.resources import Resources

PLACE = "https://8.8.8.8/in"


class Hearer:
    """An endpoint; `status` is what it answers, once it `may` answer at all."""

    def __init__(self) -> None:
        self.status, self.port = 200, 0
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.hears, self.may = asyncio.Event(), asyncio.Event()
        self.may.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.heard.append((headers, await reader.readexactly(int(headers["content-length"]))))
        self.hears.set()
        await self.may.wait()
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def hearing() -> AsyncIterator[Hearer]:
    hearer = Hearer()
    async with await asyncio.start_server(hearer.answer, "127.0.0.1", 0) as server:
        hearer.port = server.sockets[0].getsockname()[1]
        yield hearer
        hearer.may.set()


class Allowing:
    """A workshop whose settings let webhooks go to loopback."""

    def __init__(self, resources: "Resources") -> None:
        self.database, self.keys = resources.database, resources.keys
        self.settings = _allowing(resources.settings)


def _allowing(settings: Any) -> Any:
    return settings.model_copy(
        update={"webhooks": settings.webhooks.model_copy(update={"webhooks_allow_private": True})}
    )


async def put(client: "httpx.AsyncClient", key: "Minted", name: str = "crm", **body: Any) -> "httpx.Response":
    asked = {"url": PLACE, "events": ["export.ready"], **body}
    return await client.put(f"/v1/webhooks/{name}", json=asked, headers=key.headers)


async def point(resources: "Resources", key: "Minted", hearer: Hearer, name: str = "crm") -> UUID:
    """Points the endpoint at the hearer past the API, which refuses loopback here."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        lookup = await connection.fetchval("SELECT lookup_key FROM spaces WHERE id = $1", key.space)
        sealing = await resources.keys.key(lookup)
        url = sealing.seal(f"http://127.0.0.1:{hearer.port}/in", webhooks.SEALED_URL)
        found: UUID = await connection.fetchval(
            "UPDATE webhooks SET url = $2 WHERE space_id = $1 AND name = $3 RETURNING id", key.space, url, name
        )
    return found


async def say(resources: "Resources", key: "Minted", event: Event = Event.EXPORT_READY) -> None:
    async with resources.database.begin(key.space) as tx:
        await announce(await driver(tx), key.space, event, {"export": "exp_1"})


async def claim(resources: "Resources", key: "Minted", webhook: UUID) -> Claim:
    """The endpoint's work as a worker has it."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await add(connection, deliver_letter(key.space, webhook))
        row = await connection.fetchrow(
            "UPDATE work SET state = 'claimed', epoch = epoch + 1, claimed_until = now() + interval '1 minute'"
            " WHERE kind = 'deliver' AND state = 'ready' AND payload->>'webhook' = $1"
            " RETURNING id, epoch, kind, queue_class, space_id, scope, payload::text",
            webhook.hex,
        )
    payload = json.loads(row["payload"])
    named = (row["id"], row["epoch"], row["kind"], row["queue_class"], row["space_id"], row["scope"])
    return Claim(*named, 1, 0, 0, payload, {})


async def run(resources: "Resources", key: "Minted", *webhooks: UUID) -> None:
    """One run, whatever each endpoint still waits for."""
    async with resources.database.begin(key.space) as tx:
        await (await driver(tx)).execute("UPDATE webhooks SET resume_at = now() WHERE space_id = $1", key.space)
    await tick(resources, key, *webhooks)


async def tick(resources: "Resources", key: "Minted", *webhooks: UUID) -> None:
    """One run as it comes by the clock."""
    claims = [await claim(resources, key, webhook) for webhook in webhooks]
    await deliver(claims, Allowing(resources))  # type: ignore[arg-type] # what it needs


async def state(client: "httpx.AsyncClient", key: "Minted") -> dict[str, Any]:
    shown: dict[str, Any] = (await client.get("/v1/webhooks/crm", headers=key.headers)).json()
    return shown
