"""Filling a package: every data set of the registry, row by row, from one snapshot. Memory holds a few hundred rows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from pydantic_core import to_json

from gateways.package_store import Writer
from jobs import package_manifest, package_page
from jobs.package import Package, Part
from jobs.package_manifest import Contents, Origin
from jobs.package_page import Section
from jobs.package_receipts import receipts_of
from models.database import Connection
from models.dataset import DataSet, Keys, Row, Target, see_expired

_AT_ONCE = 512 * 1024  # bytes of rows that are packed together

Beat = Callable[[int, str], Awaitable[None]]
"""Told how many rows went in, and of which data set the last ones are; it may raise, and then nothing is made."""


class Press:
    """Packs and seals in a thread while the next rows are read, and writes what comes of it."""

    def __init__(self, package: Package, writer: Writer) -> None:
        self.package, self._writer = package, writer
        self._running: asyncio.Task[bytes] | None = None

    async def begin(self, name: str) -> None:
        """The next file."""
        await self.settle()
        self.package.begin(name)

    async def press(self, content: bytes) -> None:
        """More of the file that was begun."""
        await self.settle()
        self._running = asyncio.create_task(asyncio.to_thread(self.package.write, content))

    async def put(self, name: str, content: str) -> None:
        """A small file at once."""
        await self.settle()
        await self._writer.write(await asyncio.to_thread(self.package.put, name, content))

    async def settle(self) -> None:
        """Waits until what was pressed is written."""
        running, self._running = self._running, None
        if running is not None:
            await self._writer.write(await running)

    async def end(self) -> Part:
        """The file that was begun is whole."""
        await self.settle()
        return self.package.end()

    async def stop(self) -> None:
        """Nothing runs any more, whatever it came to."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def close(self) -> None:
        """The package's end."""
        await self.settle()
        await self._writer.write(await asyncio.to_thread(self.package.close))


@dataclass(frozen=True, slots=True)
class Source:
    """Whose rows, as which snapshot sees them, and the keys that open them."""

    seen: Connection
    target: Target
    keys: Keys


async def fill(
    source: Source,
    data_sets: Sequence[DataSet],
    counted: Mapping[str, int],
    origin: Origin,
    press: Press,
    beat: Beat,
) -> list[Contents]:
    """Writes everything; answers what went in, by data set. `counted` are rows by data set, expired ones included."""
    await press.put("README.txt", package_manifest.readme([one.name for one in data_sets]))
    contents: list[Contents] = []
    sections: list[Section] = []
    for data_set in data_sets:
        done = sum(section.rows for section in sections)
        section = Section(data_set.name, f"data/{data_set.name}.jsonl")
        part = await _rows(data_set.export(source.seen, source.target, source.keys), section, press, _after(beat, done))
        contents.append(Contents(section.name, part, section.rows, max(0, counted[section.name] - section.rows)))
        sections.append(section)
    receipts = Section("receipts", "receipts.jsonl")
    await _rows(receipts_of(source.seen, source.target), receipts, press, _nobody)
    page = package_page.page(origin.facts(), [*sections, receipts], package_manifest.left_out(contents))
    await press.put("index.html", page)
    await press.put("manifest.json", package_manifest.manifest(origin, contents, press.package.parts))
    await press.put("manifest-sha256.txt", package_manifest.checksums(press.package.parts))
    await press.close()
    return contents


async def count(source: Source, data_sets: Sequence[DataSet]) -> dict[str, int]:
    """Rows by data set, expired ones included."""
    await see_expired(source.seen)
    counted = {one.name: await one.count(source.seen, source.target) for one in data_sets}
    await source.seen.execute("SELECT set_config('afterturn.expired', '', true)")
    return counted


async def _rows(rows: AsyncIterator[Row], section: Section, press: Press, beat: Beat) -> Part:
    """One file of JSON Lines."""
    await press.begin(section.file)
    waiting: list[bytes] = []
    liner = _Liner()
    size = 0
    async for row in rows:
        section.note(row)
        waiting.append(liner.line(row))
        size += len(waiting[-1])
        if size >= _AT_ONCE:
            await press.press(b"".join(waiting))
            waiting, size = [], 0
            await beat(section.rows, section.name)
    if waiting:
        await press.press(b"".join(waiting))
    return await press.end()


class _Liner:
    """Rows as lines, their members in the order of their names. Rows of one data set are mostly of one shape."""

    def __init__(self) -> None:
        self._shape: list[str] = []
        self._order: list[str] = []

    def line(self, row: Row) -> bytes:
        shape = list(row)
        if shape != self._shape:
            self._shape, self._order = shape, sorted(shape)
        if shape != self._order:
            row = {name: row[name] for name in self._order}
        try:
            return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # a number past 64 bits, which JSON allows
            return to_json(row) + b"\n"


def _after(beat: Beat, done: int) -> Beat:
    return lambda rows, name: beat(done + rows, name)


async def _nobody(rows: int, name: str) -> None:
    """Receipts are few, and count for no progress."""
