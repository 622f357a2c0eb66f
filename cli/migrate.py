"""`afterturn migrate`."""

import asyncio
from pathlib import Path

from cli.output import answer
from cli.servers import settings
from migrations.run import migrate


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """Brings both databases up to date; whoever else migrates waits meanwhile."""
    stores = settings(data_dir).stores
    asyncio.run(migrate(stores.database_url.get_secret_value(), stores.keys_url.get_secret_value()))
    answer({"schema": "current"}, ["Both databases have this release's schema."], as_json=as_json)
