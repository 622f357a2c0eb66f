"""Ready means ready to be written to, and a probe is answered soon whatever the stores do."""

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest
from pydantic import SecretStr

from api.readiness import Readiness, _takes_writes
from gateways import embedded_postgres
from models.patience import USUAL, pooled
from tests.integration.relay import relayed

if TYPE_CHECKING:
    from conftest import Servers

    from config.settings import Settings


@pytest.fixture
async def read_only(servers: "Servers") -> AsyncIterator[None]:
    connection = await asyncpg.connect(servers.keys.url)
    await connection.execute("ALTER ROLE keys SET default_transaction_read_only = on")
    try:
        yield
    finally:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute("ALTER ROLE keys RESET default_transaction_read_only")
        await connection.close()


@pytest.mark.usefixtures("read_only")
async def test_a_database_that_takes_no_writes_is_not_ready(servers: "Servers") -> None:
    async with pooled(servers.keys.url, 1, 2, USUAL) as pool:
        assert not await _takes_writes(pool)
    async with pooled(servers.data.url, 1, 2, USUAL) as pool:
        assert await _takes_writes(pool)


async def test_a_server_without_room_for_another_block_is_not_ready(tmp_path: Path) -> None:
    cramped = embedded_postgres.start(tmp_path / "cramped", settings={"temp_file_limit": "0"})
    try:
        async with pooled(cramped.url, 1, 2, USUAL) as pool:
            with pytest.raises(asyncpg.InsufficientResourcesError):  # as a full disk is one
                await _takes_writes(pool)
    finally:
        cramped.stop()


async def test_a_probe_of_a_silent_database_is_answered_within_seconds(
    settings: "Settings", servers: "Servers"
) -> None:
    from jobs.resources import opened

    async with relayed(servers.data.url) as between:
        through = {"database_url": SecretStr(between.url), "database_timeout": timedelta(seconds=8)}
        stores = settings.stores.model_copy(update=through)
        async with opened(settings.model_copy(update={"stores": stores})) as resources:
            readiness = Readiness(resources)
            assert set((await readiness.check()).values()) == {"ok"}
            readiness._fresh_until = 0.0
            between.fall_silent()
            began = time.monotonic()
            checks = await readiness.check()
            assert (checks["database"], checks["key_store"]) == ("down", "ok")
            assert time.monotonic() - began < 4
            between.speak()
