"""`usage.capped` is announced when a space's tokens of a day are used up: once, however much work waits for the next day."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from models.announcement import Announcement, Event, announce_once
from models.database import Database, driver

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

Opened = Callable[..., AbstractAsyncContextManager[Any]]


async def told(database: Database, key: "Minted", ids: dict[str, str | int]) -> bool:
    async with database.begin(key.space) as tx:
        return await announce_once(await driver(tx), key.space, Event.USAGE_CAPPED, ids)


async def test_a_spent_day_is_announced_once_however_often_work_finds_it_so(opened: Opened) -> None:
    async with opened("good", model_daily_tokens=10) as book:
        await book.say_words(2)
        await book.run()
        assert await book.rows(Announcement) == []
        for _ in range(3):
            await book.say_words(2)
            assert (await book.run()).error == "daily_cap"
            await book.heal()
        (one,) = await book.rows(Announcement)
        assert one.event == "usage.capped"
        today = datetime.now(UTC).date().isoformat()
        assert one.ids == {"cap": "model_daily_tokens", "tokens": 10, "day": today}


async def test_without_a_cap_nothing_is_announced(opened: Opened) -> None:
    async with opened("good") as book:
        for _ in range(2):
            await book.say_words(2)
            await book.run()
        assert await book.rows(Announcement) == []


async def test_of_many_at_once_one_announces_and_each_webhook_is_told_once(
    database: Database, mint: "Mint", client: "httpx.AsyncClient"
) -> None:
    key, other = await mint(scopes=("security",)), await mint(scopes=("security",))
    hook = {"url": "https://93.184.215.14/x", "events": ["usage.capped"]}
    assert (await client.put("/v1/webhooks/ops", json=hook, headers=key.headers)).status_code == 200
    capped: dict[str, str | int] = {"cap": "model_daily_tokens", "tokens": 10, "day": "2026-03-02"}
    assert sum(await asyncio.gather(*(told(database, key, capped) for _ in range(6)))) == 1
    assert await told(database, key, capped | {"day": "2026-03-03"})
    assert await told(database, key, capped | {"tokens": 20})
    assert await told(database, other, capped)
    assert (await client.get("/v1/webhooks/ops", headers=key.headers)).json()["waiting"] == 3
