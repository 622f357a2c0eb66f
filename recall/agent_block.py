"""The notes that an agent's prompt gets: made once per change, and each reading of them receipted."""

import hashlib
import json
from dataclasses import dataclass, field

from cachetools import LRUCache

from memory import note_block
from memory.note_block import Block, Entry
from models import note_delivery
from models import receipt as receipts
from models.api_key import Credential
from models.database import Connection, Database, driver
from models.note import Written, opaque
from models.note_delivery import State
from models.receipt import Receipt

SMALLEST, USUAL, LARGEST = 50, 300, 2_000  # tokens of a block
OF_A_TASK = 200  # of a task section

_KEPT = 2_000  # blocks in memory at most


@dataclass(frozen=True, slots=True)
class Asked:
    """Which notes, for which agent. `task`: those alone that have one of the tags. `besides` are there already, by id."""

    agent: str
    tags: tuple[str, ...] = ()
    budget: int = USUAL
    task: bool = False
    besides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """A block, what names its bytes, and the whole answer."""

    block: Block
    etag: str
    body: bytes


@dataclass(slots=True)
class Blocks:
    """Knows the blocks that were read last. One per process; what changed meanwhile is found out at each reading."""

    database: Database
    _known: "LRUCache[tuple[object, ...], tuple[State, Given]]" = field(default_factory=lambda: LRUCache(maxsize=_KEPT))

    async def read(self, credential: Credential, asked: Asked) -> Given:
        """The block, with its receipt. MemoryOff where the space's agents have no memory."""
        place = (credential.space, credential.vendor, asked)
        known = self._known.get(place)
        if known is not None and await self._again(credential, asked, *known):
            return known[1]
        async with self.database.begin(credential.space) as tx:
            made = await make(await driver(tx), credential, asked)
        self._known[place] = made
        return made[1]

    async def _again(self, credential: Credential, asked: Asked, state: State, given: Given) -> bool:
        receipt = _receipt(credential, asked.agent, given.block)
        async with self.database.pool.acquire() as connection:
            return await note_delivery.again(connection, receipt, state, asked.agent, credential.vendor)


async def make(connection: Connection, credential: Credential, asked: Asked) -> tuple[State, Given]:
    """A block as the notes stand now, with its receipt."""
    state, found = await note_delivery.read(connection, credential.space, asked.agent, credential.vendor)
    write = note_block.section if asked.task else note_block.block
    entries = [entry for entry in map(_entry, found) if entry.id not in asked.besides]
    block = write(entries, asked.budget, asked.tags)
    await receipts.write(connection, _receipt(credential, asked.agent, block))
    body = json.dumps({"block": block.text, "tokens": block.tokens, "notes": block.notes}, ensure_ascii=False).encode()
    return state, Given(block, f'"{hashlib.sha256(body).hexdigest()[:32]}"', body)


def _entry(note: Written) -> Entry:
    return Entry(opaque(note.id), note.draft, note.version, note.created_at, note.tokens)


def _receipt(credential: Credential, agent: str, block: Block) -> Receipt:
    ids = {"agent": agent, "notes": list(block.notes)}
    return Receipt(credential.space, credential.key_id, "agent_memory.block_read", ids, {"notes": len(block.notes)})
