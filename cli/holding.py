"""`afterturn hold`: a person's data must not be deleted, until the hold is lifted."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from cli import spaces
from cli.actor import actor
from cli.failure import Failed
from cli.output import answer, table
from cli.owner import named
from cli.reach import with_stores
from cli.spaces import Place
from intake.identity import People
from jobs.resources import Resources
from models import hold as holds
from models import receipt as receipts
from models.database import driver
from models.hold import BeingErased, Nobody, Placed
from models.receipt import Receipt
from models.subject import HandleKind, opaque

_TITLES = ("PERSON", "COVERS", "BY", "SINCE")


@dataclass(frozen=True, slots=True)
class Whose:
    """As the command line says it: a person of a space, as KIND:HANDLE."""

    space: str
    person: str

    def __post_init__(self) -> None:
        self.handle()

    def handle(self) -> tuple[HandleKind, str]:
        """The person's handle; WrongUse when it cannot name anybody."""
        return named(self.person, "--subject")


def place(whose: Whose, data_dir: Path | None, *, as_json: bool) -> None:
    """Holds the person. Failed where nobody is known by the handle, or who is known is being erased."""
    subject = with_stores(data_dir, lambda resources: _place(resources, whose))
    answer({"profile_id": opaque(subject), "held": True}, [f"{opaque(subject)} is held."], as_json=as_json)


def lift(whose: Whose, data_dir: Path | None, *, as_json: bool) -> None:
    """Ends the hold. Failed where there is none."""
    subject = with_stores(data_dir, lambda resources: _lift(resources, whose))
    lines = [f"{opaque(subject)} is held no more: the next sweep deletes what was due."]
    answer({"profile_id": opaque(subject), "held": False}, lines, as_json=as_json)


def show(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Lists a space's holds, oldest first."""
    placed = with_stores(data_dir, lambda resources: _listed(resources, space))
    rows = [(opaque(one.named), len(one.covers), one.actor, one.placed_at) for one in placed]
    answer([_document(one) for one in placed], table(rows, _TITLES), as_json=as_json)


async def _place(resources: Resources, whose: Whose) -> UUID:
    space, subject, by = await _found(resources, whose)
    async with resources.database.begin(space.id) as tx:
        connection = await driver(tx)
        try:
            placed = await holds.place(connection, space.id, subject, by)
        except BeingErased:
            raise Failed("the person is being erased, or was") from None
        except Nobody:
            raise Failed(f"the space {whose.space} knows nobody of that handle") from None
        if placed:
            await receipts.write(connection, Receipt(space.id, by, "hold.placed", {"subject": opaque(subject)}))
    return subject


async def _lift(resources: Resources, whose: Whose) -> UUID:
    space, subject, by = await _found(resources, whose)
    async with resources.database.begin(space.id) as tx:
        connection = await driver(tx)
        if not await holds.lift(connection, space.id, subject):
            raise Failed("no hold was placed on this person by that handle: `afterturn hold list` shows them")
        await receipts.write(connection, Receipt(space.id, by, "hold.lifted", {"subject": opaque(subject)}))
    return subject


async def _found(resources: Resources, whose: Whose) -> tuple[Place, UUID, str]:
    space = await spaces.find(resources.database, whose.space)
    people = People(resources.database, resources.keys)
    subject = await people.subject(space.id, space.lookup_key, whose.handle(), make=False)
    if subject is None:
        raise Failed(f"the space {whose.space} knows nobody of that handle")
    return space, subject, await actor(resources, space)


async def _listed(resources: Resources, name: str) -> list[Placed]:
    space = await spaces.find(resources.database, name)
    async with resources.database.begin(space.id) as tx:
        return await holds.listed(await driver(tx), space.id)


def _document(one: Placed) -> dict[str, object]:
    covers = [opaque(subject) for subject in one.covers]
    return {"profile_id": opaque(one.named), "covers": covers, "actor": one.actor, "placed_at": one.placed_at}
