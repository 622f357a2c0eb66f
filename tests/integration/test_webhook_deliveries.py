"""What becomes of deliveries: tried for a day, parked, sent back, seen; and no endpoint stands in another's way."""

import asyncio
import base64
import hashlib
import hmac
import socket
import time
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from api import webhooks as door
from jobs import deliver as delivering
from models import release
from models import webhook as webhooks
from models.columns import utc_now
from models.database import driver
from tests.integration.hearing import Allowing, claim, hearing, point, put, say, state, tick

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


class Clock:
    """What the job takes for the time."""

    def __init__(self) -> None:
        self.at = utc_now()

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(delivering, "utc_now", clock)
    return clock


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("security", "receipts:read"))


async def listed(client: "httpx.AsyncClient", key: "Minted", **asked: Any) -> dict[str, Any]:
    answer = await client.get("/v1/webhooks/crm/deliveries", params=asked, headers=key.headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def due(resources: "Resources", key: "Minted", at: datetime) -> bool:
    async with resources.database.begin(key.space) as tx:
        return bool(await webhooks.waiting(await driver(tx), at))


async def test_a_delivery_is_tried_ever_more_seldom_for_a_day_then_parked_and_sent_back_by_an_operator(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering.random, "uniform", lambda _low, high: high)
    await put(client, key)
    tried: list[float] = []
    async with hearing() as hearer:
        webhook, hearer.status = await point(resources, key, hearer), 503
        await say(resources, key)
        began = clock.at = utc_now()
        while (waits := await state(client, key))["waiting"]:
            await tick(resources, key, webhook)
            tried.append((clock.at - began).total_seconds())
            (one,) = (await listed(client, key))["deliveries"]
            if one["state"] == "waiting":
                clock.at = datetime.fromisoformat(one["due_at"])
                assert not await due(resources, key, clock.at - timedelta(microseconds=1))
                assert await due(resources, key, clock.at)
        waits = [later - earlier for earlier, later in pairwise(tried)]
        assert [round(wait) for wait in waits[:10]] == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
        assert 86_400 <= tried[-1] < 86_400 + 3_600
        assert len(hearer.heard) == len(tried)
        (parked,) = (await listed(client, key, state="parked"))["deliveries"]
        assert (parked["state"], parked["error"], parked["attempts"]) == ("parked", "http_503", len(tried))
        assert (await client.post("/v1/webhooks/crm/retry", headers=key.headers)).json() == {"retried": 1}
        hearer.status, clock.at = 200, utc_now()
        await tick(resources, key, webhook)
        (there,) = (await listed(client, key))["deliveries"]
    assert (there["state"], there["error"], there["due_at"]) == ("delivered", None, None)
    assert {headers["webhook-id"] for headers, _ in hearer.heard} == {there["id"]}
    (receipt,) = (await client.get("/v1/receipts", params={"action": "webhook.retried"}, headers=key.headers)).json()[
        "receipts"
    ]
    assert (receipt["actor"], receipt["ids"], receipt["counts"]) == (key.id, {"webhook": "crm"}, {"deliveries": 1})


async def test_a_dead_endpoint_does_not_delay_a_live_one(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    for name in ("crm", "live"):
        await put(client, key, name)
    async with hearing() as dead, hearing() as live:
        dead.may.clear()
        hooks = [await point(resources, key, dead), await point(resources, key, live, "live")]
        for _ in range(3):
            await say(resources, key)
        running = asyncio.create_task(tick(resources, key, *hooks))
        await dead.hears.wait()
        while len(live.heard) < 3:  # all of them, while the dead one still owes its first answer
            await asyncio.wait_for(live.hears.wait(), 10)
            live.hears.clear()
        assert len(dead.heard) == 1
        assert not running.done()
        dead.may.set()
        await running


async def test_what_an_endpoint_will_not_take_does_not_hold_up_the_rest(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key)
    async with hearing() as hearer:
        webhook, hearer.status = await point(resources, key, hearer), 422
        await say(resources, key)
        await tick(resources, key, webhook)
        hearer.status = 200
        await say(resources, key)
        await tick(resources, key, webhook)
    page = await listed(client, key)
    assert [(one["state"], one["error"]) for one in page["deliveries"]] == [
        ("delivered", None),
        ("waiting", "http_422"),
    ]


async def test_deliveries_page_by_state_newest_first(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    await put(client, key)
    for _ in range(5):
        await say(resources, key)
    seen, before = [], {}
    while True:
        page = await listed(client, key, limit=2, state="waiting", **before)
        seen += [one["created_at"] for one in page["deliveries"]]
        if page["next"] is None:
            break
        before = {"before": page["next"]}
    assert (len(seen), seen) == (5, sorted(seen, reverse=True))
    assert (await listed(client, key, state="parked"))["deliveries"] == []
    other = await mint(scopes=("security",))
    assert (await client.get("/v1/webhooks/crm/deliveries", headers=other.headers)).status_code == 404


async def test_a_worker_that_dies_after_it_sent_sends_again_under_the_same_id(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key)
    async with hearing() as hearer:
        webhook = await point(resources, key, hearer)
        await say(resources, key)
        hearer.may.clear()
        mine = await claim(resources, key, webhook)
        dying = asyncio.create_task(delivering.deliver([mine], Allowing(resources)))  # type: ignore[arg-type] # what it needs
        await hearer.hears.wait()
        dying.cancel()  # it heard of no answer, and says nothing to anybody
        await asyncio.gather(dying, return_exceptions=True)
        pool = resources.database.pool
        await pool.execute("UPDATE work SET claimed_until = now() - interval '1 second' WHERE id = $1", mine.id)
        async with pool.acquire() as connection:
            await release.recover_expired(connection, {})
        hearer.may.set()
        await tick(resources, key, webhook)
    assert len(hearer.heard) == 2
    assert len({headers["webhook-id"] for headers, _ in hearer.heard}) == 1
    assert (await state(client, key))["delivered"] == 1


async def test_a_secret_before_signs_for_a_day_and_then_no_more(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", clock: Clock
) -> None:
    before = (await put(client, key)).json()["secret"]
    after = (await put(client, key, rotate=True)).json()["secret"]
    async with hearing() as hearer:
        webhook = await point(resources, key, hearer)
        for ahead in (timedelta(), timedelta(seconds=door._OVERLAP + 1)):
            await say(resources, key)
            clock.at = utc_now() + ahead
            await tick(resources, key, webhook)
    (both, _), (one, body) = hearer.heard
    assert [len(headers["webhook-signature"].split()) for headers in (both, one)] == [2, 1]
    signed = f"{one['webhook-id']}.{one['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(after.removeprefix("whsec_")), signed, hashlib.sha256)
    assert one["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    fresh = {**one, "webhook-timestamp": str(int(time.time()))}
    with pytest.raises(WebhookVerificationError):
        Webhook(before).verify(body, fresh)


async def test_a_name_that_comes_to_lead_inside_is_refused_when_it_is_called(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, leads, real = asyncio.get_running_loop(), ["8.8.8.8"], asyncio.get_running_loop().getaddrinfo

    async def found(host: str, port: int, **how: Any) -> list[Any]:
        if host != "hook.example":
            return list(await real(host, port, **how))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (leads[-1], port))]

    monkeypatch.setattr(loop, "getaddrinfo", found)
    async with hearing() as hearer:
        named = await put(client, key, url=f"https://hook.example:{hearer.port}/in")
        assert named.status_code == 200, named.text
        leads.append("127.0.0.1")
        await say(resources, key)
        async with resources.database.begin(key.space) as tx:
            webhook = await (await driver(tx)).fetchval("SELECT id FROM webhooks WHERE space_id = $1", key.space)
        await delivering.deliver([await claim(resources, key, webhook)], resources)  # type: ignore[arg-type] # what it needs
    assert hearer.heard == []
    assert (await state(client, key))["last_error"] == "private_address"
