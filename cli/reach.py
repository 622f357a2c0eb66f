"""Opening the stores for one command, and closing them after it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from cli.servers import settings
from config import logging
from config.settings import Settings
from jobs.resources import Resources, opened
from jobs.start import check_erasures

_WITHIN = 10.0  # seconds for the stores to take the connections

T = TypeVar("T")


def with_stores(data_dir: Path | None, work: Callable[[Resources], Awaitable[T]]) -> T:
    """Runs `work` on the stores of the data folder, or of the environment, and answers what it answers."""
    there = settings(data_dir)
    logging.configure(there.logs, "cli")
    return asyncio.run(_on(there, work))


async def _on(there: Settings, work: Callable[[Resources], Awaitable[T]]) -> T:
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(_WITHIN):
            resources = await stack.enter_async_context(opened(there))
            await check_erasures(resources.keys, resources.database)
        return await work(resources)
