"""By which hash is a scope known? Under the space's newest key; those of its former ones stay known until written anew.

A conversation's states, though nothing links them, are found by its id, while that can still be read.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from gateways.key_store import KeyGone
from gateways.ledger import Entry
from jobs.resources import Resources
from memory.state import ScopeKind
from models import receipt as receipts
from models import state as states
from models.conversation import SEALED_ID
from models.database import Connection, driver
from models.receipt import Receipt


async def rotate(resources: Resources, space: int, actor: str) -> UUID:
    """Scopes are hashed under a new key from now on, whose id this is. A state keeps its hash until its next write."""
    key = await resources.keys.make(uuid4(), "space")  # first: a crash in between leaves a key that hashes nothing
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        await states.add_scope_key(connection, space, key.id)
        await receipts.write(connection, Receipt(space, actor, "state_scopes.rotated", {"key": str(key.id)}))
    return key.id


async def find(resources: Resources, space: int, people: Sequence[UUID], conversation: int | None) -> dict[str, Any]:
    """The hashes of the ids of these people's conversations, or of that one, as an entry keeps them; empty: there are none.

    With them the keys of those of their states that have one of their own.
    """
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        lookup_key = await connection.fetchval("SELECT lookup_key FROM spaces WHERE id = $1", space)
        scope_keys = await states.scope_keys(connection, space, lookup_key)
        rows = await connection.fetch(
            "SELECT subject_id, sealed_id FROM conversations WHERE space_id = $1 AND (subject_id = ANY ($2::uuid[]) OR id = $3)",
            *(space, list(people), conversation),
        )
    try:
        owners = await resources.keys.keys(list({row["subject_id"] for row in rows}))
        hashed_by = await resources.keys.keys(scope_keys)
    except KeyGone:  # erased meanwhile, and looked for by whoever did
        return {}
    ids = [owners[row["subject_id"]].open(row["sealed_id"], SEALED_ID) for row in rows]
    scopes = [states.scope_digest(key, ScopeKind.CONVERSATION, one).hex() for one in ids for key in hashed_by.values()]
    if not scopes:
        return {}
    async with resources.database.begin(space) as tx:
        own = await states.own_keys(await driver(tx), space, [bytes.fromhex(one) for one in scopes])
    return {"states": scopes, "state_keys": [one.hex for one in own]}


def own_keys(entry: Entry) -> list[UUID]:
    """The keys of states about nobody who is known, which an erasure destroys with them."""
    return [UUID(one) for one in entry.target.get("state_keys", ())]


async def take_away(connection: Connection, entry: Entry, fixed: dict[str, Any]) -> int:
    """In the transaction of the erasure: its states are gone, and what was written before is refused; answers how many."""
    return await states.take_away(
        connection,
        entry.space,
        [UUID(one) for one in fixed["subjects"]],
        fixed["conversations"],
        ([bytes.fromhex(one) for one in entry.target.get("states", ())], [UUID(one) for one in fixed["owners"]]),
    )
