"""`afterturn migrate`."""

import asyncio
from pathlib import Path

from cli.output import answer
from cli.servers import settings
from config.settings import Settings
from intake import erasure
from jobs.resources import opened
from migrations.run import migrate


def run(data_dir: Path | None, *, replay_erasures: bool, as_json: bool) -> None:
    """Brings both databases up to date; whoever else migrates waits meanwhile. May erase again what a backup has."""
    there = settings(data_dir)
    stores = there.stores
    asyncio.run(migrate(stores.database_url.get_secret_value(), stores.keys_url.get_secret_value()))
    told, lines = {"schema": "current"}, ["Both databases have this release's schema."]
    if replay_erasures:
        replayed = asyncio.run(_replay(there))
        told |= {"replayed": str(replayed)}
        lines.append(f"{replayed} erasures were replayed: nothing of them is served; the workers delete the rows.")
    answer(told, lines, as_json=as_json)


async def _replay(there: Settings) -> int:
    async with opened(there) as resources:
        return await erasure.replay(resources)
