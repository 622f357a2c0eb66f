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
from models.conversation import SEALED_ID, Conversation
from recall.log import lines


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose context is wanted, for which conversation, and in how many tokens.

    `owner` is whose log it is, `speaker` whose conversation. `no_memory`: a turn without memory does not read it either.
    """

    space: int
    owner: UUID | None
    speaker: UUID | None
    conversation_id: str
    agent: str
    context: str
    token_budget: int
    no_memory: bool


class AgentDiffers(Exception):
    """The conversation is another agent's; the caller hears the same as for one that does not exist."""


@dataclass(frozen=True, slots=True)
class Part:
    """Ready text for a prompt, and its tokens; an empty text where there is nothing to say."""

    name: str
    text: str
    tokens: int


Writer = Callable[[Resources, Asked, int], Awaitable[str | None]]


async def assemble(resources: Resources, asked: Asked) -> list[Part]:
    """The parts that there are, in their order. Each takes what it needs of what those before it left."""
    await _check_agent(resources, asked)
    parts: list[Part] = []
    left = asked.token_budget
    for name, write in _PARTS:
        text = await write(resources, asked, left)
        if text is None:  # not wanted, or switched off
            continue
        parts.append(Part(name, text, tokens.count(text)))
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


async def _observations(resources: Resources, asked: Asked, budget: int) -> str | None:
    if asked.no_memory:
        return None
    opened = await lines(resources, asked.space, asked.owner, asked.agent, asked.context)
    return await asyncio.to_thread(block, opened.lines, budget) if opened.on else None


# What changes least stands first, so that a provider's prompt cache keeps working.
_PARTS: Sequence[tuple[str, Writer]] = (("observations", _observations),)
