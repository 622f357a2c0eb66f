"""What is asked each time that notes are given to an agent: do those that are kept still hold? And the receipt of it."""

import json
from dataclasses import dataclass
from uuid import uuid4

from models import agent as agents
from models import note as notes
from models import note_book
from models.database import Connection
from models.note import Reader, Written
from models.receipt import Receipt


@dataclass(frozen=True, slots=True)
class State:
    """By what kept notes hold: the revision of the space's book, and whose the agent is."""

    revision: int
    vendor: str | None


_AGAIN = "SELECT deliver_notes_again($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb, $7, $8, $9, $10)"


async def again(connection: Connection, receipt: Receipt, state: State, agent: str, of_key: str | None) -> bool:
    """Writes the receipt where the state still holds; False, and nothing is written, where it does not.

    The connection is in no transaction: the statement is one, and binds itself to the receipt's space. `of_key` is the vendor of the key, which counts for an agent that nobody registered.
    """
    return bool(
        await connection.fetchval(
            _AGAIN,
            *(uuid4(), receipt.space, receipt.actor, receipt.action),
            *(json.dumps(dict(receipt.ids)), json.dumps(dict(receipt.counts))),
            *(state.revision, state.vendor, agent, of_key),
        )
    )


async def read(connection: Connection, space: int, agent: str, of_key: str | None) -> tuple[State, list[Written]]:
    """The active notes that an agent may read, and by what they hold. MemoryOff."""
    await note_book.opened(connection, space)
    revision = await note_book.revision(connection, space)
    registered = await agents.find(connection, space, agent)
    vendor = of_key if registered is None else registered.vendor
    return State(revision, vendor), await notes.active(connection, Reader(space, agent, vendor))
