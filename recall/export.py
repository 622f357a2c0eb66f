"""Exports, as an operator asks for one, looks how far it is, and fetches its package."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from gateways.key_store import KeyGone
from gateways.package_store import Missing, PackageStore
from jobs.letters import expire_export_letter, export_letter
from jobs.resources import Resources
from models import export_package as exports
from models import receipt as receipts
from models import subject as subjects
from models import work
from models.columns import utc_now
from models.database import Connection, driver
from models.export_package import KEPT, Export, Package
from models.receipt import Receipt
from models.work import Added
from privacy.package_cipher import Opener

_SWEPT = KEPT + timedelta(days=1)  # after which leftovers of an export that never became ready go too
_STILL_THERE = 1.0  # seconds of a download between looks whether the person still is


class PackagesOff(Exception):
    """This deployment has nowhere to put packages."""


class NobodyThere(Exception):
    """The space knows no such person, or not any more."""


class NoSuchExport(Exception):
    """There is no such export in this space."""


class NotReady(Exception):
    """There is no package to fetch: not yet, or not any more."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks for whose package. `asked` makes equal requests one."""

    space: int
    subject: UUID
    actor: str
    asked: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A package on its way; `content` is the ZIP."""

    package: Package
    content: AsyncIterator[bytes]


async def ask(resources: Resources, request: Request) -> tuple[UUID, list[Added]]:
    """Takes an export on; answers its id, and the work to ring for. NobodyThere when the person is gone."""
    if resources.packages is None:
        raise PackagesOff
    async with resources.database.begin(request.space) as tx:
        connection = await driver(tx)
        if not await exports.stand(connection, request.space, [request.subject]):
            raise NobodyThere
        export = Export(
            id=uuid4(),
            space_id=request.space,
            subject_id=request.subject,
            asked=request.asked,
            actor=request.actor,
            state="accepted",
            counts={},
        )
        if await exports.accept(connection, export):
            return export.id, await _begin(connection, request, export.id)
        before = await exports.asked_before(connection, request.space, request.asked or b"")
    if before is None:
        raise NobodyThere  # it was erased in between, with its person
    return before, []


async def _begin(connection: Connection, request: Request, export: UUID) -> list[Added]:
    folder = exports.folder(request.space, request.subject)
    added = await work.add(connection, export_letter(request.space, export, folder))
    await work.add(connection, expire_export_letter(request.space, export, folder), utc_now() + _SWEPT)
    if added is not None:
        await exports.belongs_to(connection, request.space, export, added.id)
    await receipts.write(connection, _receipt(request, "export.requested", export))
    return [] if added is None else [added]


async def find(resources: Resources, space: int, export: UUID) -> Package:
    """How an export stands."""
    async with resources.database.begin(space) as tx:
        found = await exports.find(await driver(tx), space, export)
    if found is None:
        raise NoSuchExport
    return found


async def fetch(resources: Resources, space: int, actor: str, export: UUID) -> Fetched:
    """The package of an export, opened as it is read. A receipt says that it was fetched, before its first byte goes."""
    if resources.packages is None:
        raise PackagesOff
    package = await _ready(resources, space, export)
    key = await resources.keys.key(package.subject)
    content = _opened(resources.packages, package, Opener(key, export.hex))
    try:
        first = await anext(content)
    except Missing:
        raise NotReady("expired") from None
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        if not await exports.stand(connection, space, [package.subject]):
            raise KeyGone
        request = Request(space, package.subject, actor)
        await receipts.write(connection, _receipt(request, "export.downloaded", export, package.size or 0))
    return Fetched(package, _while_it_stands(resources, package, first, content))


async def _ready(resources: Resources, space: int, export: UUID) -> Package:
    package = await find(resources, space, export)
    if package.state != "ready":
        raise NotReady(package.state)
    return package


async def _opened(store: PackageStore, package: Package, opener: Opener) -> AsyncIterator[bytes]:
    async for sealed in store.read(package.file or ""):
        if content := await asyncio.to_thread(opener.open, sealed):
            yield content
    yield opener.close()


async def _while_it_stands(
    resources: Resources, package: Package, first: bytes, rest: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """An erasure ends a download as it ends every other read."""
    looked = time.monotonic()
    yield first
    async for content in rest:
        if time.monotonic() > looked + _STILL_THERE:
            await _ready(resources, package.space, package.id)
            looked = time.monotonic()
        yield content


def _receipt(request: Request, action: str, export: UUID, size: int | None = None) -> Receipt:
    ids = {"export": exports.opaque(export), "subject": subjects.opaque(request.subject)}
    return Receipt(request.space, request.actor, action, ids, {} if size is None else {"bytes": size})
