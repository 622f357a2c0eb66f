"""Agent notes looked for, and taken out whole."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from jobs.resources import Resources
from models import note as notes
from models import note_book, note_export, note_search
from models import receipt as receipts
from models.database import driver
from models.note import Reader, Written
from models.receipt import Receipt

_PAGE = 200  # notes, or proposals, of one transaction


@dataclass(frozen=True, slots=True)
class Wanted:
    """Words; with `tags`, only notes that have one of them; at most so many."""

    query: str
    tags: tuple[str, ...]
    most: int


async def search(resources: Resources, reader: Reader, actor: str, wanted: Wanted) -> list[tuple[Written, float]]:
    """What the reader may read and what answers best, with how well; and the receipt of it."""
    async with resources.database.begin(reader.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, reader.space)
        found = await note_search.found(connection, reader, wanted.query, wanted.tags, wanted.most)
        await receipts.write(connection, delivery(reader, actor, "agent_memory.searched", [one.id for one, _ in found]))
    return found


async def export(resources: Resources, space: int, actor: str) -> AsyncIterator[str]:
    """Every note with its versions, then every proposal, oldest first: a line of JSON each. The receipt comes first."""
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        counts = await note_export.counts(connection, space)
        await receipts.write(connection, Receipt(space, actor, "agent_memory.exported", {}, counts))
    for page in (note_export.notes_after, note_export.proposals_after):
        after: note_export.Place | None = None
        while True:
            async with resources.database.begin(space) as tx:
                rows, after = await page(await driver(tx), space, after, _PAGE)
            for row in rows:
                yield json.dumps(row, ensure_ascii=False) + "\n"
            if len(rows) < _PAGE:
                break


def delivery(reader: Reader, actor: str, action: str, delivered: list[UUID]) -> Receipt:
    """That notes were given to an agent, by their ids."""
    ids: dict[str, str | list[str]] = {"notes": [notes.opaque(one) for one in delivered]}
    if reader.agent is not None:
        ids["agent"] = reader.agent
    return Receipt(reader.space, actor, action, ids, {"notes": len(delivered)})
