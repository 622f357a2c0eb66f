"""Masking with pseudonyms: one placeholder for one value in all that a person says, however many say it at once."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from models import pseudonym as pseudonyms
from models.database import Database, driver
from models.pseudonym import Pseudonyms
from privacy.sealing import SealingKey

T = TypeVar("T")


async def steadily(
    database: Database, space: int, key: SealingKey, masked: Callable[[dict[str, str]], Awaitable[T]]
) -> T:
    """What `masked` answers by the pseudonyms of the subject whose key this is, once all that it added is kept.

    It is asked again where somebody added meanwhile. Of those who add at once one gets on each time, so nobody waits for
    ever. Asyncpg's ForeignKeyViolationError where the subject is gone.
    """
    while True:
        given = await _read(database, space, key)
        done = await masked(given.given)
        if not given.grown or await _keep(database, space, key, given):
            return done


async def _read(database: Database, space: int, key: SealingKey) -> Pseudonyms:
    async with database.begin(space) as tx:
        return await pseudonyms.read(await driver(tx), space, key)


async def _keep(database: Database, space: int, key: SealingKey, given: Pseudonyms) -> bool:
    async with database.begin(space) as tx:
        return await pseudonyms.keep(await driver(tx), space, key, given)
