"""Everything for the next prompt in one call: parts in a fixed order, the stable ones first, within one budget."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlmodel import col, select

from gateways.key_store import KeyGone
from jobs.resources import Resources
from memory import tokens
from memory.blocks import block
from models.api_key import Credential
from models.conversation import SEALED_ID, Conversation
from models.note_book import MemoryOff
from recall import agent_block
from recall.agent_block import Blocks
from recall.log import lines


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose context is wanted, for which conversation, and in how many tokens.

    `owner` is whose log it is, `speaker` whose conversation. `no_memory`: a turn without memory does not read it either.
    `notes` is None for a key that may not read agent notes.
    """

    space: int
    owner: UUID | None
    speaker: UUID | None
    conversation_id: str
    agent: str
    context: str
    token_budget: int
    no_memory: bool
    notes: "NotesAsked | None" = None


@dataclass(frozen=True, slots=True)
class NotesAsked:
    """By which key agent notes are read, and which: `tags` come first, `object_types` are those of the task, if any."""

    blocks: Blocks
    credential: Credential
    tags: tuple[str, ...]
    object_types: tuple[str, ...]


class AgentDiffers(Exception):
    """The conversation is another agent's; the caller hears the same as for one that does not exist."""


@dataclass(frozen=True, slots=True)
class Part:
    """Ready text for a prompt, and its tokens; an empty text where there is nothing to say. `notes` are those in it."""

    name: str
    text: str
    tokens: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    notes: tuple[str, ...] = ()


Writer = Callable[[Resources, Asked, int, Sequence[Part]], Awaitable[_Said | None]]


async def assemble(resources: Resources, asked: Asked) -> list[Part]:
    """The parts that there are, in their order. Each takes what it needs of what those before it left."""
    await _check_agent(resources, asked)
    parts: list[Part] = []
    left = asked.token_budget
    for name, write in _PARTS:
        said = await write(resources, asked, left, parts)
        if said is None:  # not wanted, or switched off
            continue
        parts.append(Part(name, said.text, tokens.count(said.text), said.notes))
        left -= parts[-1].tokens
    return parts


async def _check_agent(resources: Resources, asked: Asked) -> None:
    if asked.speaker is None:
        return
    try:
        key = await resources.keys.key(asked.speaker)
    except KeyGone:  # erased: there is no such conversation any more
        return
    query = select(Conversation.agent).where(
        col(Conversation.space_id) == asked.space,
        col(Conversation.subject_id) == asked.speaker,
        col(Conversation.digest) == key.digest(asked.conversation_id, SEALED_ID),
    )
    async with resources.database.begin(asked.space) as tx:
        agent = (await tx.execute(query)).scalar_one_or_none()
    if agent not in (None, asked.agent):
        raise AgentDiffers


async def _notes(_: Resources, asked: Asked, budget: int, __: Sequence[Part]) -> _Said | None:
    if asked.notes is None:
        return None
    return await _read(asked.notes, agent_block.Asked(asked.agent, asked.notes.tags, min(agent_block.USUAL, budget)))


async def _observations(resources: Resources, asked: Asked, budget: int, _: Sequence[Part]) -> _Said | None:
    if asked.no_memory:
        return None
    opened = await lines(resources, asked.space, asked.owner, asked.agent, asked.context)
    return _Said(await asyncio.to_thread(block, opened.lines, budget)) if opened.on else None


async def _task(_: Resources, asked: Asked, budget: int, before: Sequence[Part]) -> _Said | None:
    if asked.notes is None or not asked.notes.object_types:
        return None
    said = tuple(note for part in before for note in part.notes)
    most = min(agent_block.OF_A_TASK, budget)
    return await _read(asked.notes, agent_block.Asked(asked.agent, asked.notes.object_types, most, True, said))  # noqa: FBT003 - a task's


async def _read(notes: NotesAsked, asked: agent_block.Asked) -> _Said | None:
    try:
        given = await notes.blocks.read(notes.credential, asked)
    except MemoryOff:
        return None
    return _Said(given.block.text, given.block.notes)


# What changes least stands first, so that a provider's prompt cache keeps working.
_PARTS: Sequence[tuple[str, Writer]] = (
    ("agent_memory", _notes),
    ("observations", _observations),
    ("task_section", _task),
)
