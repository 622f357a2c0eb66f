"""What a process holds open: one frozen handful, made at the door and handed in."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from config.settings import Settings
from gateways import key_store
from gateways.key_store import KeyStore
from jobs.bell import Bell
from models import database
from models.database import Database


@dataclass(frozen=True, slots=True)
class Resources:
    """The stores of a process, and its settings."""

    settings: Settings
    database: Database
    keys: KeyStore
    bell: Bell


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Resources]:
    """Opens the stores and closes them with the block. PostgreSQL must answer; Redis need not."""
    stores = settings.stores
    async with AsyncExitStack() as stack:
        data = await stack.enter_async_context(
            database.connect(stores.database_url.get_secret_value(), size=stores.database_pool)
        )
        keys = await stack.enter_async_context(
            key_store.connect(stores.keys_url.get_secret_value(), stores.master())
        )
        bell = Bell.connect(stores.redis_url.get_secret_value())
        stack.push_async_callback(bell.close)
        yield Resources(settings, data, keys, bell)
