"""What does a package cost? Everything about one person as a package, against COPY of the same turns to a file.

Both are measured in MB of turns a second: the bytes that COPY writes, which the package holds opened, packed and
sealed. The memory is that of a process of its own that does nothing but the export, at its highest.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop

from bench.report import remark, tell
from bench.service import OFFLINE, Service, run, service
from cli import spaces
from cli.servers import environment
from config.package_place import FolderPlace
from config.settings import load_or_exit
from gateways.package_store import open_store
from intake.identity import People
from jobs.export import export_subject
from jobs.resources import furnished, opened
from models import claim as claims
from models.claim import Rung, Terms
from models.content import seal_turn
from models.subject import HandleKind
from privacy.sealing import SealingKey
from recall import export as exporting

_AT_ONCE = 20_000
_SAID = (
    "We could move the appointment to Thursday afternoon, if the technician can bring the replacement part with him by then.",
    "Thanks. The invoice of March still shows the old address; please have it sent again to the new one in Porto.",
    "Yes.",
    "I have checked the order: it left the warehouse on Monday, is with the carrier since, and should arrive within two days.",
    "Does the warranty cover the battery as well, or only the device? I bought both together in the shop last summer.",
)
_COLUMNS = (
    "space_id",
    "log_id",
    "seq",
    "conversation_id",
    "subject_id",
    "role",
    "sealed",
    "tokens",
    "said_at",
    "said_offset",
    "state",
    "reason",
)


async def measure(turns: int) -> dict[str, object]:
    """COPY, then the export, of the same turns."""
    with tempfile.TemporaryDirectory(prefix="afterturn-packages-") as folder:
        async with service(**OFFLINE, AFTERTURN_PACKAGES_URL=Path(folder).as_uri()) as there:
            space, subject = await fill(there, turns)
            copied, copy_seconds = await _copy(there, space, Path(folder) / "copy")
            remark(f"COPY: {copied / 1e6:.0f} MB in {copy_seconds:.1f} s")
            export = await asked_for(there, space, subject)
            child = await asyncio.to_thread(_export_apart, there, export)
            again = await _copy(there, space, Path(folder) / "copy")
    copy_seconds = (copy_seconds + again[1]) / 2  # before and after: the machine may be another's meanwhile
    seconds, peak, size = (float(part) for part in child.splitlines()[-1].split())
    return {
        "turns": turns,
        "copy_mb_s": round(copied / 1e6 / copy_seconds, 1),
        "export_mb_s": round(copied / 1e6 / seconds, 1),
        "ratio": round(copy_seconds / seconds, 3),
        "peak_mb": round(peak, 1),
        "package_mb": round(size / 1e6, 1),
    }


async def fill(there: Service, turns: int) -> tuple[int, Any]:
    """Somebody who has said so much; answers the space and who it is."""
    resources = there.resources
    place = await spaces.find_or_make(resources.database, resources.keys, spaces.DEFAULT)
    people = People(resources.database, resources.keys)
    subject = await people.subject(place.id, place.lookup_key, (HandleKind.OWNER, "bench"), make=True)
    assert subject is not None
    key = await resources.keys.key(subject)
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        log = await connection.fetchval(
            "INSERT INTO logs (space_id, subject_id, agent, context, last_seq) VALUES ($1, $2, 'bench', 'corporate', $3) RETURNING id",
            *(place.id, subject, turns),
        )
        conversation = await connection.fetchval(
            "INSERT INTO conversations (space_id, subject_id, digest, sealed_id, agent) VALUES ($1, $2, '\\x00', $3, 'bench') RETURNING id",
            *(place.id, subject, key.seal("bench", "conversation")),
        )
        for first in range(0, turns, _AT_ONCE):
            rows = [
                _turn(place.id, log, conversation, key, number) for number in range(first, min(turns, first + _AT_ONCE))
            ]
            await connection.executemany(_INSERT, rows)
    await resources.database.pool.execute("VACUUM ANALYZE turns")
    return place.id, subject


_INSERT = f"INSERT INTO turns ({', '.join(_COLUMNS)}) VALUES ({', '.join(f'${place}' for place in range(1, 13))})"  # noqa: S608 - a constant
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def _turn(space: int, log: int, conversation: int, key: SealingKey, number: int) -> tuple[Any, ...]:
    said = f"{_SAID[number % len(_SAID)]} ({number})"
    role = "user" if number % 2 else "assistant"
    return (
        *(space, log, number + 1, conversation, key.id, role, seal_turn(key, said, message_id=f"m-{number}")),
        *(len(said) // 4, _BEGAN + timedelta(seconds=number), 0, "skipped", "memory_off"),
    )


async def _copy(there: Service, space: int, file: Path) -> tuple[int, float]:
    async with there.resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(space))
        began = time.perf_counter()
        await connection.copy_from_query("SELECT * FROM turns ORDER BY log_id, seq", output=file, timeout=3600)
        took = time.perf_counter() - began
    return os.path.getsize(file), took  # noqa: ASYNC240, PTH202 - a bench may wait for its disk


async def asked_for(there: Service, space: int, subject: Any) -> str:
    """Makes an export due; answers space, export, work and epoch."""
    place = there.settings.packages.place()
    assert isinstance(place, FolderPlace)
    resources = replace(there.resources, packages=open_store(place))
    export, added = await exporting.ask(resources, exporting.Request(space, subject, "bench"))
    return f"{space} {export.hex} {added[0].id} {added[0].epoch}"


def _export_apart(there: Service, export: str) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "bench.export", "--only", export],
        env=os.environ | environment(there.settings),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return made.stdout


async def _only(export: str) -> None:
    """In a process of its own: one run of an export that was asked for; says its seconds, its peak in MB, its bytes."""
    space, name, work_id, epoch = export.split()
    settings = load_or_exit()
    async with opened(settings) as resources, furnished(resources) as workshop:
        terms = Terms("bench", "interactive", ("export_subject",), timedelta(hours=1), 100)
        async with resources.database.pool.acquire() as connection:
            (claim,) = await claims.rung(connection, terms, [Rung(int(work_id), int(epoch))], 1)
        began = time.perf_counter()
        await export_subject(claim, workshop)
        took = time.perf_counter() - began
        package = await exporting.find(resources, int(space), UUID(name))
    assert package.state == "ready", package.state
    print(took, _peak(), package.size)


def _peak() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.export", description=__doc__)
    parser.add_argument("--long", action="store_true", help="1,000,000 turns")
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        uvloop.run(_only(asked.only))  # as a worker does
        return
    turns = 1_000_000 if asked.long else asked.turns

    async def bench() -> None:
        tell("export", "ratio >= 0.25, peak_mb <= 200", **await measure(turns))

    run(bench)


if __name__ == "__main__":
    main()
