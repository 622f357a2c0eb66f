"""`afterturn export`: a package of everything about one person, asked for, awaited, and written to a file."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, remark
from cli.owner import named
from cli.reach import with_stores
from cli.spaces import Place
from intake.identity import People
from jobs.resources import Resources
from models.export_package import Package, opaque
from models.subject import HandleKind
from recall import export as exporting
from recall.export import NobodyThere, NotReady, PackagesOff, Request

_EVERY = 0.25  # seconds between looks
_NOT_BEGUN = 20.0  # seconds without a worker before it is said that one is needed


@dataclass(frozen=True, slots=True)
class Wanted:
    """As the command line says it. With `out` the package is waited for, whether `wait` is given or not."""

    space: str
    person: str
    out: Path | None
    wait: bool

    def __post_init__(self) -> None:
        self.handle()
        if self.out is not None and not self.out.absolute().parent.is_dir():
            raise WrongUse(f"--out: there is no folder {self.out.absolute().parent}")

    def handle(self) -> tuple[HandleKind, str]:
        """The person's handle; WrongUse when it cannot name anybody."""
        return named(self.person, "--subject")


def run(wanted: Wanted, data_dir: Path | None, *, as_json: bool) -> None:
    """Asks for the package, and waits for it where that is wanted. Failed when there is none."""
    package = with_stores(data_dir, lambda resources: _export(resources, wanted))
    said = {"id": opaque(package.id), "state": package.state, "counts": dict(package.counts), "bytes": package.size}
    lines = [f"id     {said['id']}", f"state  {package.state}"]
    if wanted.out is not None:
        said["file"] = str(wanted.out)
        lines.append(f"file   {wanted.out} ({package.size} bytes, {sum(package.counts.values())} rows)")
    answer(said, lines, as_json=as_json)


async def _export(resources: Resources, wanted: Wanted) -> Package:
    place = await spaces.find(resources.database, wanted.space)
    try:
        request = await _request(resources, place, wanted)
        export, added = await exporting.ask(resources, request)
    except NobodyThere:
        raise Failed(f"the space {wanted.space} knows nobody of that handle") from None
    except PackagesOff:
        raise Failed("there is nowhere to put packages: set AFTERTURN_PACKAGES_URL") from None
    await resources.bell.ring(added)
    package = await exporting.find(resources, place.id, export)
    if not wanted.wait and wanted.out is None:
        return package
    with _progress() as gauge:
        package = await _awaited(resources, package, gauge)
    if package.state != "ready":
        raise Failed(f"the export {opaque(export)} ended {package.state}: `afterturn status` says what the workers do")
    if wanted.out is not None:
        await _save(resources, request, package, wanted.out)
    return package


async def _request(resources: Resources, place: Place, wanted: Wanted) -> Request:
    people = People(resources.database, resources.keys)
    subject = await people.subject(place.id, place.lookup_key, wanted.handle(), make=False)
    if subject is None:
        raise NobodyThere
    return Request(place.id, subject, await actor(resources, place))


async def _awaited(resources: Resources, package: Package, gauge: "Gauge") -> Package:
    waited = 0.0
    while package.state in ("accepted", "running"):
        gauge.shows(package)
        await asyncio.sleep(_EVERY)
        waited += _EVERY
        if package.state == "accepted" and waited == _NOT_BEGUN:
            remark("No worker has begun it yet: is `afterturn up` or `afterturn worker` running?")
        package = await exporting.find(resources, package.space, package.id)
    return package


async def _save(resources: Resources, request: Request, package: Package, out: Path) -> None:
    """Writes the package under its name only once it is whole; nobody else may read it."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        fetched = await exporting.fetch(resources, request.space, request.actor, package.id)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            async for content in fetched.content:
                await asyncio.to_thread(file.write, content)
            file.flush()
            os.fsync(file.fileno())
        part.rename(out)
    except NotReady as error:
        raise Failed(f"the package cannot be fetched: it is {error.state}") from None
    except OSError as error:
        raise Failed(f"--out cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


class Gauge:
    """How far the export is, on standard error: a bar on a terminal, a line for each tenth elsewhere."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._told = progress, -1
        self._task: TaskID | None = None if progress is None else progress.add_task("waiting", total=None)

    def shows(self, package: Package) -> None:
        rows, of = package.progress.get("rows", 0), package.progress.get("of", 0)
        if self._progress is not None and self._task is not None:
            told = str(package.progress.get("data_set", package.state))
            self._progress.update(self._task, description=told, completed=rows, total=of or None)
        elif of and 10 * rows // of > self._told:
            self._told = 10 * rows // of
            remark(f"{rows} of {of} rows")


@contextmanager
def _progress() -> Iterator[Gauge]:
    if not sys.stderr.isatty():
        yield Gauge(None)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Standard output is not the bar's to redirect: it may be a pipe.
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False) as progress:
        yield Gauge(progress)
