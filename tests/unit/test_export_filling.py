"""A package of any size is filled in little memory, and stays a ZIP that every program opens."""

import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest

from jobs import package_filling
from jobs.package import Package
from jobs.package_filling import Press, Source, fill
from jobs.package_manifest import Origin
from models.dataset import Row, Target
from privacy.package_cipher import Opener, Sealer
from privacy.sealing import SealingKey

KEY = SealingKey(uuid4(), os.urandom(32))
ORIGIN = Origin(
    UUID(int=1), "here", "afterturn", UUID(int=2), (UUID(int=2),), datetime(2026, 3, 2, tzinfo=UTC), "registry", 0
)


class Rows:
    """A data set of so many rows of so many characters, none of which shrinks much."""

    tables: ClassVar[dict[str, Any]] = {}

    def __init__(self, name: str, rows: int, size: int) -> None:
        self.name, self._rows, self._size = name, rows, size

    async def export(self, *_: Any) -> AsyncIterator[Row]:
        for number in range(self._rows):
            yield {"text": os.urandom(self._size // 2).hex(), "id": number}


class Sink:
    """A writer that opens what it is given, and keeps it where that is wanted."""

    def __init__(self, *, keeps: bool) -> None:
        self._opener, self._keeps, self.content, self.size = Opener(KEY, "p"), keeps, bytearray(), 0

    async def write(self, content: bytes) -> None:
        self._take(self._opener.open(content))

    def close(self) -> bytes:
        self._take(self._opener.close())
        return bytes(self.content)

    def _take(self, content: bytes) -> None:
        self.size += len(content)
        if self._keeps:
            self.content += content


@pytest.fixture(autouse=True)
def no_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any) -> AsyncIterator[Row]:
        for _nothing in ():
            yield _nothing

    monkeypatch.setattr(package_filling, "receipts_of", none)


async def nobody(rows: int, name: str) -> None:
    """Hears nothing."""


async def filled(sink: Sink, *data_sets: Any) -> None:
    source: Any = Source(None, Target(1), {})  # type: ignore[arg-type]  # these data sets ask no database
    counted = {one.name: 0 for one in data_sets}
    await fill(source, data_sets, counted, ORIGIN, Press(Package(Sealer(KEY, "p")), sink), nobody)


async def test_a_hundred_megabytes_take_a_few() -> None:
    sink = Sink(keeps=False)
    tracemalloc.start()
    await filled(sink, Rows("turns", 1_000, 100_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sink.close()
    assert sink.size > 50_000_000
    assert peak < 15_000_000


async def test_what_was_filled_unpacks_with_its_names_in_order() -> None:
    sink = Sink(keeps=True)
    await filled(sink, Rows("observations", 0, 10), Rows("turns", 3_000, 1_000))
    with zipfile.ZipFile(io.BytesIO(sink.close())) as package:
        assert package.testzip() is None
        assert package.namelist() == [
            *("README.txt", "data/observations.jsonl", "data/turns.jsonl", "receipts.jsonl"),
            *("index.html", "manifest.json", "manifest-sha256.txt"),
        ]
        lines = package.read("data/turns.jsonl").splitlines()
        assert [json.loads(line)["id"] for line in lines] == list(range(3_000))
        assert all(line.startswith(b'{"id":') for line in lines)
        assert package.read("data/observations.jsonl") == b""
        assert "The first 200 are shown." in package.read("index.html").decode()


async def test_a_beat_that_raises_ends_it() -> None:
    class Stop(Exception):
        """Enough."""

    async def stop(rows: int, name: str) -> None:
        raise Stop

    source: Any = Source(None, Target(1), {})  # type: ignore[arg-type]  # as above
    press = Press(Package(Sealer(KEY, "p")), Sink(keeps=False))
    with pytest.raises(Stop):
        await fill(source, [Rows("turns", 100, 100_000)], {"turns": 100}, ORIGIN, press, stop)
    await press.stop()
