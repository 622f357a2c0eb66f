"""What is checked before a process starts: are the stores there, and are they this deployment's?"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn, TypeVar

import asyncpg
import structlog
from sqlalchemy.exc import DBAPIError

from config.settings import Settings, WrongSetting
from gateways import key_store, ledger
from models import database
from models.patience import AWAY

_PAUSE = 0.5  # seconds between tries
_ANSWERS_WITHIN = 10.0  # seconds for one

T = TypeVar("T")

_log = structlog.get_logger()


class StoreAway(Exception):
    """A store did not answer for as long as was waited; `name` says which, the message how."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(type(error).__name__)
        self.name = name


def check_stores_or_exit(settings: Settings) -> None:
    """Waits for both databases; ends the process with one line where one stays away or is not this deployment's."""
    try:
        shared = asyncio.run(_look(settings))
    except StoreAway as away:
        _exit(f"{away.name} does not answer: {away}", 1)
    except WrongSetting as error:
        _exit(str(error), 2)
    except asyncpg.UndefinedTableError:
        _exit("the key store has not this release's schema: run `afterturn migrate`", 1)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        _exit(f"PostgreSQL refuses what AFTERTURN_KEYS_URL or DATABASE_URL says: {type(error).__name__}", 1)
    if shared:
        _exit("AFTERTURN_KEYS_URL names the data database: keys and text must not share a dump", 2)


async def once_up(name: str, reach: Callable[[], Awaitable[T]], within: timedelta) -> T:
    """What `reach` answers, once it does; its own error when the store is still away after `within`."""
    deadline, told = time.monotonic() + within.total_seconds(), False
    while True:
        try:
            return await reach()
        except (*AWAY, DBAPIError) as error:
            if isinstance(error, ValueError) or time.monotonic() >= deadline:
                raise  # an address that the driver itself does not understand stays what it is
            if not told:
                _log.warning("store_waited_for", store=name, error=type(error).__name__)
            told = True
        await asyncio.sleep(_PAUSE)


async def _look(settings: Settings) -> bool:
    """True when the key store is the data database."""
    stores = settings.stores
    data, keys = stores.database_url.get_secret_value(), stores.keys_url.get_secret_value()
    await _awaited("the data database behind DATABASE_URL", lambda: _answers(data), stores.start_within)
    shared = await _awaited(
        "the key store behind AFTERTURN_KEYS_URL", lambda: key_store.holds_data(keys), stores.start_within
    )
    if not shared:
        async with key_store.connect(keys, stores.master(), stores.former_master(), size=1) as store:  # it proves them
            await check_ledger(store, data)
    return shared


class LedgerAhead(WrongSetting):
    """The data are from before an erasure that the ledger knows: a backup was restored."""


async def check_ledger(store: key_store.KeyStore, data_url: str) -> None:
    """Returns when the data hold every erasure. LedgerAhead says what to do."""
    async with database.connect(data_url, size=1) as data:
        await check_erasures(store, data)


async def check_erasures(store: key_store.KeyStore, data: database.Database) -> None:
    """The same by stores that are open."""
    if await ledger.missing(store, data):
        raise LedgerAhead(
            "these data are from before an erasure: run `afterturn migrate --replay-erasures`, then start again"
        )


async def _awaited(name: str, reach: Callable[[], Awaitable[T]], within: timedelta) -> T:
    try:
        return await once_up(name, reach, within)
    except AWAY as error:
        if isinstance(error, ValueError):
            raise
        raise StoreAway(name, error) from None


async def _answers(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=_ANSWERS_WITHIN, command_timeout=_ANSWERS_WITHIN)
    await connection.close(timeout=_ANSWERS_WITHIN)


def _exit(line: str, code: int) -> NoReturn:
    sys.stderr.write(f"afterturn: {line}\n")
    raise SystemExit(code) from None
