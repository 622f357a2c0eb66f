"""Everything for the next prompt in one call: parts in a fixed order, the stable ones first, within one budget."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from jobs.resources import Resources
from memory import tokens
from memory.blocks import block
from recall.log import lines


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose context is wanted, and in how many tokens. `no_memory`: a turn without memory does not read it either."""

    space: int
    owner: UUID | None
    agent: str
    context: str
    token_budget: int
    no_memory: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Ready text for a prompt, and its tokens; an empty text where there is nothing to say."""

    name: str
    text: str
    tokens: int


Writer = Callable[[Resources, Asked, int], Awaitable[str | None]]


async def assemble(resources: Resources, asked: Asked) -> list[Part]:
    """The parts that there are, in their order. Each takes what it needs of what those before it left."""
    parts: list[Part] = []
    left = asked.token_budget
    for name, write in _PARTS:
        text = await write(resources, asked, left)
        if text is None:  # not wanted, or switched off
            continue
        parts.append(Part(name, text, tokens.count(text)))
        left -= parts[-1].tokens
    return parts


async def _observations(resources: Resources, asked: Asked, budget: int) -> str | None:
    if asked.no_memory:
        return None
    opened = await lines(resources, asked.space, asked.owner, asked.agent, asked.context)
    return block(opened.lines, budget) if opened.on else None


# What changes least stands first, so that a provider's prompt cache keeps working.
_PARTS: Sequence[tuple[str, Writer]] = (("observations", _observations),)
