"""`afterturn up`: everything on one machine, until Ctrl-C."""

import asyncio
import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

from cli.output import answer, remark
from cli.running import Running, running
from config.settings import default_data_dir

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(data_dir: Path | None, port: int | None, *, as_json: bool) -> None:
    """Runs until it is told to stop. Raises Failed or WrongSetting when it cannot."""
    if sys.stderr.isatty():
        os.environ.setdefault("AFTERTURN_LOG_FORMAT", "text")
    with suppress(asyncio.CancelledError):
        asyncio.run(_run((data_dir or default_data_dir()).absolute(), port, as_json=as_json))


async def _run(folder: Path, port: int | None, *, as_json: bool) -> None:
    me = asyncio.current_task()
    for number in _STOPS:
        asyncio.get_running_loop().add_signal_handler(number, me.cancel if me else sys.exit)
    async with running(folder, port, sys.stderr.fileno()) as there:
        _announce(there, folder, as_json=as_json)
        await there.stays()


def _announce(there: Running, folder: Path, *, as_json: bool) -> None:
    servers = there.servers
    document = {"url": servers.url, "database_url": servers.database_url, "redis_url": servers.redis_url}
    answer(document, [f"ready {servers.url}"], as_json=as_json)
    option = "" if folder == default_data_dir() else f" --data-dir {shlex.quote(str(folder))}"
    remark(f"A key for a chat server:  afterturn keys create{option} --name chat --scopes turns:write,memory:read")
    if not there.settings.memory.observational_memory:
        remark("Observational memory is off: turns are kept, nothing is observed.")
        remark("To turn it on:  AFTERTURN_OBSERVATIONAL_MEMORY=1 afterturn up" + option)
    remark("Ctrl-C stops everything.")
