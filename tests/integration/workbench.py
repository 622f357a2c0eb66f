"""What tests of the worker work with: letters that are sent, and rows that come to stand as they should."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from jobs.bell import Bell
from jobs.job import BackOff, BulkJob, Job
from jobs.letters import QueueClass
from jobs.verdict import Nothing, Verdict
from models import work
from models.database import Database
from models.work import Added, Claim, Letter
from scheduler.worker import Staffing

LIMIT = timedelta(seconds=20)
AT_ONCE = BackOff(timedelta(0), timedelta(0))
QUIET = Staffing(claim=timedelta(seconds=5), grace=timedelta(seconds=5), look_every=timedelta(minutes=5))
WATCHFUL = replace(QUIET, look_every=timedelta(seconds=0.2))

Jobs = dict[str, Job[None] | BulkJob[None]]


def letter(kind: str, space: int = 1, queue_class: QueueClass = QueueClass.MEMORY) -> Letter:
    name = uuid4().hex
    return Letter(kind, queue_class, space, f"scope:{name}", name, {"number": 7})


async def send(database: Database, bell: Bell, *letters: Letter) -> list[Added]:
    added = await work.add_many(database.pool, [(one, None) for one in letters])
    await until(lambda: bell.ring(added))  # on a busy machine a ring may give up after its 50 ms
    return added


async def state(database: Database, work_id: int) -> str:
    return str(await database.pool.fetchval("SELECT state FROM work WHERE id = $1", work_id))


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(15):
        while not await holds():  # noqa: ASYNC110 - what is waited for happens in a server
            await asyncio.sleep(0.01)


async def until_state(database: Database, added: Added, wanted: str) -> None:
    async def holds() -> bool:
        return await state(database, added.id) == wanted

    await until(holds)


async def nothing(_: Claim, __: None) -> Verdict:
    return Nothing()
