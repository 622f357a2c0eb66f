"""/v1/agent-memory/block and task-section: an agent's notes, ready for its prompt."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from api import note_shapes
from api.desk import AtDesk, Calling
from api.document import Header, opens
from api.door import Door
from api.note_shapes import AgentQuery
from memory.note import LONGEST_TAG, folded_tags
from models.api_key import Scope
from recall.agent_block import LARGEST, OF_A_TASK, SMALLEST, USUAL, Asked, Given

router = APIRouter(prefix="/v1/agent-memory", route_class=Door, strict_content_type=False)

_MOST_TAGS = 32
_SEEN = Header("If-None-Match", 0, "The ETag of a block that is at hand: 304 where it still holds.")
_READ = opens(Scope.AGENT_MEMORY_READ, 404, 422, body=False, of_a_person=False, headers=[_SEEN])
_READ["responses"][304] = {"description": "The block that is at hand still holds."}

_Tags = Annotated[
    list[Annotated[str, Field(max_length=_MOST_TAGS * (LONGEST_TAG + 1))]],
    Query(max_length=_MOST_TAGS, description="One after another, or by commas."),
]


class AgentBlock(BaseModel):
    """Ready text for a prompt, before whatever is the customer's; empty where there is no note that fits."""

    block: str
    tokens: int
    notes: list[str]


@router.get("/block", response_model=AgentBlock, **_READ)
async def read_block(
    request: Request,
    desk: AtDesk,
    caller: Calling,
    agent: AgentQuery = None,
    tags: _Tags = [],  # noqa: B006 - FastAPI's default, never changed
    budget: Annotated[int, Query(ge=SMALLEST, le=LARGEST)] = USUAL,
) -> Response:
    """The same bytes until the notes change. Each reading leaves a receipt with the ids delivered, a 304 too."""
    asked = Asked(note_shapes.agent_of(caller, agent), _tags(tags), budget)
    return _answer(request, await desk.blocks.read(caller.credential, asked))


@router.get("/task-section", response_model=AgentBlock, **_READ)
async def read_task_section(
    request: Request,
    desk: AtDesk,
    caller: Calling,
    object_types: _Tags,
    agent: AgentQuery = None,
) -> Response:
    """The notes that have the tags of a task's object types, for whoever can change only the end of the context."""
    asked = Asked(note_shapes.agent_of(caller, agent), _tags(object_types), OF_A_TASK, task=True)
    return _answer(request, await desk.blocks.read(caller.credential, asked))


def _tags(named: list[str]) -> tuple[str, ...]:
    return tuple(sorted(folded_tags(one for name in named for one in name.split(","))))


def _answer(request: Request, given: Given) -> Response:
    headers = {"ETag": given.etag, "Cache-Control": "private, no-cache"}
    at_hand = request.headers.get(_SEEN.name, "")
    if at_hand.strip() == "*" or given.etag in {one.strip().removeprefix("W/") for one in at_hand.split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(given.body, headers=headers, media_type="application/json")
