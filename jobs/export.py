"""Export: everything about one person becomes a package, as of one instant; and goes when its time is over."""

import hashlib
import time
from dataclasses import dataclass
from importlib.metadata import version
from uuid import UUID

import structlog

from gateways.key_store import KeyGone
from gateways.package_store import PackageStore
from jobs.letters import expire_export_letter
from jobs.package import Package
from jobs.package_filling import Press, Source, count, fill
from jobs.package_manifest import Origin
from jobs.resources import Workshop
from jobs.verdict import Done, Hopeless, Later, Nothing, Verdict
from models import export_package as exports
from models import hold, link, registry, work
from models import receipt as receipts
from models.announcement import Event, announce
from models.database import Connection, driver
from models.dataset import Target
from models.export_package import Made
from models.receipt import Receipt
from models.registry import DATA_SETS
from models.snapshot import snapshot
from models.work import Claim, Superseded
from privacy.package_cipher import Sealer

_BEAT = 1.0  # seconds between words of progress
_UNTIL_ERASED = 5.0  # seconds until another look, while a conversation is being erased
_STILL_GOING = 3600.0  # seconds until the sweep looks again after a package that is not to go yet

_log = structlog.get_logger()


class Gone(Exception):
    """The person was erased while the package was made."""


class HalfErased(Exception):
    """Part of what would go in is being erased: a package is made when that is done."""


@dataclass(slots=True)
class Run:
    """One try at one export. `file` is this try's own name, which no other ever writes."""

    claim: Claim
    workshop: Workshop
    store: PackageStore
    export: UUID
    folder: str
    _next_beat: float = 0.0

    @property
    def file(self) -> str:
        return f"{self.folder}/{self.export.hex}.{self.claim.epoch}"

    async def beat(self, rows: int, of: int, data_set: str) -> None:
        """Says how far it is, now and then; Gone when there is nobody to say it about any more."""
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + _BEAT
        async with self.workshop.database.begin(self.claim.space_id) as tx:
            connection = await driver(tx)
            await work.advance(connection, self.claim, {"rows": rows, "of": of, "data_set": data_set})
            found = await exports.find(connection, self.claim.space_id, self.export)
        if found is None or found.state != "running":
            raise Gone


async def export_subject(claim: Claim, workshop: Workshop) -> Verdict:
    """One package, whole and ready, or none."""
    if workshop.packages is None:
        return Hopeless("packages_off")
    run = Run(claim, workshop, workshop.packages, UUID(claim.payload["export"]), claim.payload["folder"])
    try:
        subject = await _begin(run)
        if subject is None:
            return Nothing()
        await _remove_leftovers(run.store, run.folder, run.export)
        made, target = await _make(run, subject)
    except HalfErased:
        return Later(_UNTIL_ERASED, "erasure_in_progress", counts=False)
    except (Gone, KeyGone):
        return await _cancel(run)
    return await _commit(run, subject, made, target)


async def _begin(run: Run) -> UUID | None:
    """Whose package it is. None: it is made already, or was given up."""
    async with run.workshop.database.begin(run.claim.space_id) as tx:
        connection = await driver(tx)
        await exports.begin(connection, run.claim.space_id, run.export)
        found = await exports.find(connection, run.claim.space_id, run.export)
    if found is None or found.state == "cancelled":
        raise Gone
    return found.subject if found.state == "running" else None


async def _make(run: Run, subject: UUID) -> tuple[Made, Target]:
    """The package in its store, as this run's file."""
    async with snapshot(run.workshop.database, run.claim.space_id) as seen:
        target = await exports.target(seen, run.claim.space_id, subject)
        if not target.subjects:
            raise Gone
        if await exports.half_erased(seen, target):
            raise HalfErased
        keys = await run.workshop.keys.keys(target.subjects)
        source = Source(seen, target, keys)
        origin = await _origin(source, run.export, subject)
        package = Package(Sealer(keys[subject], run.export.hex))
        async with run.store.writing(run.file) as writer:
            rows = await _fill(run, source, origin, Press(package, writer))
    return Made(run.file, package.size, rows, origin.as_of), target


async def _fill(run: Run, source: Source, origin: Origin, press: Press) -> dict[str, int]:
    data_sets = sorted(DATA_SETS, key=lambda one: one.name)
    counted = await count(source, data_sets)
    of = sum(counted.values())
    try:
        contents = await fill(source, data_sets, counted, origin, press, lambda rows, name: run.beat(rows, of, name))
    finally:
        await press.stop()
    return {one.name: one.rows for one in contents}


async def _origin(source: Source, export: UUID, subject: UUID) -> Origin:
    subjects = list(source.target.subjects)
    row = await source.seen.fetchrow(
        """
        SELECT now() AS as_of, (SELECT lookup_key FROM spaces WHERE id = $1) AS space
        """,
        source.target.space,
    )
    return Origin(
        package=export,
        deployment=hashlib.sha256(b"afterturn/deployment/" + row["space"].bytes).hexdigest()[:16],
        software=f"afterturn {version('afterturn')}",
        subject=subject,
        subjects=subjects,
        as_of=row["as_of"],
        registry=registry.version(),
        unconfirmed=await link.unconfirmed(source.seen, source.target.space, subjects),
    )


async def _commit(run: Run, subject: UUID, made: Made, target: Target) -> Verdict:
    """Ready, unless the person is gone: an erasure that comes later finds the row and the file."""
    try:
        standing = await _announce(run, subject, made, target)
    except Superseded:
        await run.store.remove(run.file)
        raise
    if not standing:
        return await _cancel(run)
    _log.info("export_ready", export=run.export.hex, bytes=made.size, rows=sum(made.counts.values()))
    return Done()


async def _announce(run: Run, subject: UUID, made: Made, target: Target) -> bool:
    space = run.claim.space_id
    async with run.workshop.database.begin(space) as tx:
        connection = await driver(tx)
        if not await exports.stand(connection, space, target.subjects):
            return False
        until = await exports.finish(connection, space, run.export, made)
        if until is None:
            return False
        await work.complete(connection, run.claim)
        counts = {"bytes": made.size, "rows": sum(made.counts.values())}
        await receipts.write(connection, _receipt(run, "export.ready", subject, counts))
        await announce(connection, space, Event.EXPORT_READY, {"export": exports.opaque(run.export)})
        await work.add_many(connection, [(expire_export_letter(space, run.export, run.folder), until)])
    return True


async def _cancel(run: Run) -> Verdict:
    """Nothing of it stays: the files first, then the word that they are gone."""
    await _remove_leftovers(run.store, run.folder, run.export)
    async with run.workshop.database.begin(run.claim.space_id) as tx:
        connection = await driver(tx)
        await work.complete(connection, run.claim)
        await _end(connection, run.claim, run.export, "cancelled")
    _log.info("export_cancelled", export=run.export.hex)
    return Done()


async def expire_export(claim: Claim, workshop: Workshop) -> Verdict:
    """Takes away the file of a package whose time is over, and whatever runs of it left behind."""
    if workshop.packages is None:
        return Hopeless("packages_off")
    export = UUID(claim.payload["export"])
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        found = await exports.find(connection, claim.space_id, export)
        held = found is not None and await hold.held(connection, claim.space_id, [found.subject])
    if held or (found is not None and found.state in ("accepted", "running", "ready")):
        return Later(_STILL_GOING, "legal_hold" if held else "not_over", counts=False)
    await _remove_leftovers(workshop.packages, claim.payload["folder"], export)
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await work.complete(connection, claim)
        if found is not None:
            await _end(connection, claim, export, found.state)
    return Done()


async def _end(connection: Connection, claim: Claim, export: UUID, state: str) -> None:
    if await exports.end(connection, claim.space_id, export, state):
        ids = {"export": exports.opaque(export)}
        await receipts.write(connection, Receipt(claim.space_id, f"job:{claim.kind}", f"export.{state}", ids))


async def _remove_leftovers(store: PackageStore, folder: str, export: UUID) -> None:
    """What any run of this export wrote, those that died over it included."""
    mine = f"{folder}/{export.hex}."
    files = {name.split("/")[len(folder.split("/"))] for name in await store.files(folder) if name.startswith(mine)}
    for file in sorted(files):
        await store.remove(f"{folder}/{file}")


def _receipt(run: Run, action: str, subject: UUID, counts: dict[str, int]) -> Receipt:
    ids = {"export": exports.opaque(run.export), "subject": f"sub_{subject.hex}"}
    return Receipt(run.claim.space_id, f"job:{run.claim.kind}", action, ids, counts)
