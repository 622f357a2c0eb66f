"""POST /v1/context: everything for the next prompt in one call."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.shapes import AnyId, AnyText, LogAsk, ReaderIdentity, Switch, TokenBudget, reader
from memory.note import folded_tags
from models.api_key import Credential, Scope
from recall.context import Asked, NotesAsked, assemble

router = APIRouter(route_class=Door, strict_content_type=False)


class ContextAsk(LogAsk):
    """What the next prompt is for, and how many tokens of it are memory's."""

    conversation_id: AnyId
    token_budget: TokenBudget
    no_memory: bool = Field(default=False, description="Leaves the observations out.")
    tags: list[AnyText] | None = Field(None, description="Which agent notes come first.")
    object_types: list[AnyText] | None = Field(None, description="The task's: the notes with those tags come last.")
    no_history: bool = Field(default=False, description="Leaves the conversation's replay out, where there is one.")


class Part(BaseModel):
    """Ready text, and its tokens."""

    name: str
    tokens: int
    text: str


class Assembled(BaseModel):
    """Parts in a fixed order, the stable ones first, all within the budget."""

    memory: Switch
    memory_identity: ReaderIdentity
    token_budget: int
    tokens: int
    parts: list[Part]


@router.post("/v1/context", **opens(Scope.MEMORY_READ))
async def read_context(ask: ContextAsk, desk: AtDesk, caller: Calling) -> Assembled:
    """What belongs into the next prompt of a conversation."""
    caller.speak_for(ask.agent, ask.context)
    identity = await desk.whose(caller)
    asked = Asked(
        space=caller.credential.space,
        owner=identity.owner,
        speaker=identity.speaker,
        conversation_id=ask.conversation_id,
        agent=ask.agent,
        context=ask.context,
        token_budget=ask.token_budget,
        no_memory=ask.no_memory,
        notes=_notes(ask, desk, caller.credential),
    )
    parts = [Part(name=part.name, tokens=part.tokens, text=part.text) for part in await assemble(desk.resources, asked)]
    return Assembled(
        memory="on" if desk.intake.memory_on else "off",
        memory_identity=reader(identity),
        token_budget=ask.token_budget,
        tokens=sum(part.tokens for part in parts),
        parts=parts,
    )


def _notes(ask: ContextAsk, desk: Desk, credential: Credential) -> NotesAsked | None:
    if Scope.AGENT_MEMORY_READ not in credential.scopes:
        return None
    tags, object_types = (tuple(sorted(folded_tags(said or ()))) for said in (ask.tags, ask.object_types))
    return NotesAsked(desk.blocks, credential, tags, object_types)
