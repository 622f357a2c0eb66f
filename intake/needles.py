"""Whoever is erased is looked for in agent memory, which should name nobody: what names them is set aside for a person.

It is looked for while the person's handles and names can still be read, before the erasure is entered; the entry keeps
the ids of what was found, so that a crash, or a backup brought back, changes nothing of it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from gateways.key_store import KeyGone
from gateways.ledger import Entry
from jobs.resources import Resources
from models import name as names
from models import note as notes
from models import note_quarantine as aside
from models import proposal as proposals
from models import receipt as receipts
from models.database import Connection, driver
from models.erasing import SET_ASIDE
from models.name import SEALED_NAME
from models.receipt import Receipt
from models.subject import SEALED_HANDLE, HandleKind
from privacy.known import Known
from privacy.masking import mask
from privacy.view import fold

_SHORTEST = 3  # characters of a name or handle that is looked for
_PAGE = 500


async def find(resources: Resources, space: int, people: Sequence[UUID]) -> dict[str, list[str]]:
    """Notes and proposals, by id, that hold a name or handle of these subjects; empty where none does."""
    called = await _called(resources, space, people)
    if not called:
        return {}
    known = Known.compile(called)
    found: dict[str, list[str]] = {}
    for kind, page in (("notes", aside.note_texts), ("proposals", aside.proposal_texts)):
        after = aside.FIRST
        while True:
            async with resources.database.begin(space) as tx:
                rows = await page(await driver(tx), space, after, _PAGE)
            hits = await asyncio.to_thread(_hits, rows, known, called)
            if hits:
                found.setdefault(kind, []).extend(hits)
            if len(rows) < _PAGE:
                break
            after = rows[-1][0]
    return found


async def set_aside(connection: Connection, entry: Entry) -> dict[str, int]:
    """In the transaction of the erasure: what was found is read by no agent any more. Answers how many of each there were."""
    found = [[UUID(one) for one in entry.target.get(kind, ())] for kind in ("notes", "proposals")]
    if not any(found):
        return {}
    counts = await aside.set_aside(connection, entry.space, *found)
    ids: dict[str, Any] = {
        "erasure": str(entry.id),
        "notes": [notes.opaque(one) for one in found[0]],
        "proposals": [proposals.opaque(one) for one in found[1]],
    }
    await receipts.write(connection, Receipt(entry.space, entry.actor, "note.quarantined", ids, counts))
    return {f"{kind}{SET_ASIDE}": rows for kind, rows in counts.items()}


async def _called(resources: Resources, space: int, people: Sequence[UUID]) -> set[str]:
    async with resources.database.begin(space) as tx:
        _, callings = await names.callings(await driver(tx), space, people)
    told = [one for one in callings if one.kind != HandleKind.KEY]
    try:
        keys = await resources.keys.keys([one.subject for one in told])
    except KeyGone:  # erased meanwhile, and looked for by whoever did
        return set()
    opened = {keys[one.subject].open(one.sealed, SEALED_NAME if one.kind is None else SEALED_HANDLE) for one in told}
    return {value for value in opened if len(value) >= _SHORTEST}


def _hits(rows: Sequence[tuple[UUID, list[str]]], known: Known, called: set[str]) -> list[str]:
    plainly = {fold(value).casefold() for value in called}
    return [row.hex for row, texts in rows if any(_names(text, known, plainly) for text in texts)]


def _names(text: str, known: Known, plainly: set[str]) -> bool:
    """Whether a text names them: as masking finds what is known, or letter by letter, as an id inside a longer word."""
    folded = fold(text).casefold()
    if any(value in folded for value in plainly if len(value) > _SHORTEST + 2):
        return True
    spans = mask(text, known=known).spans
    return bool(spans) and spans != mask(text).spans
