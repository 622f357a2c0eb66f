"""/v1/agent-memory/distill: an agent asks for what it can learn from a conversation or a task of its own."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, model_validator

from api import note_shapes, problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.note_shapes import AgentQuery
from api.shapes import AgentName, AnyId, Ask, one_of
from intake import distilling
from intake import notes as writing
from models import distillation as distillations
from models import note_book
from models import proposal as proposals
from models.api_key import Scope
from models.database import driver
from models.distillation import Reason

router = APIRouter(prefix="/v1/agent-memory/distill", route_class=Door, strict_content_type=False)

_Id = Annotated[str, Path(pattern="^dst_[0-9a-f]{32}$", description="As the request was answered: dst_…")]
State = Literal["waiting", "proposed", "nothing"]


class DistilAsk(Ask):
    """One of `conversation_id` and `task_id`."""

    agent: AgentName | None = Field(None, description="A key of one agent may leave it out.")
    conversation_id: AnyId | None = None
    task_id: AnyId | None = None

    model_config = ConfigDict(json_schema_extra=one_of("conversation_id", "task_id"))

    @model_validator(mode="after")
    def _one(self) -> "DistilAsk":
        if (self.conversation_id is None) == (self.task_id is None):
            raise problems.invalid(("body", "takes conversation_id or task_id"))
        return self

    @property
    def source(self) -> tuple[str, str]:
        """What it is, and its id."""
        return ("task", self.task_id) if self.conversation_id is None else ("conversation", self.conversation_id)  # type: ignore[return-value]  # one of them is there


class Requested(BaseModel):
    """It is looked into; `GET` tells what came of it."""

    id: str


class Distillation(BaseModel):
    """`proposal_id` where something was proposed, `reason` where nothing was."""

    id: str
    state: State
    reason: Reason | None = None
    proposal_id: str | None = None
    asked_at: datetime
    finished_at: datetime | None = None


@router.post("", status_code=202, **opens(Scope.AGENT_MEMORY_WRITE, 404, of_a_person=False))
async def ask_for_distillation(ask: DistilAsk, desk: AtDesk, caller: Calling) -> Requested:
    """Reads the turns of the last 90 days for one note about the work. What comes of it is a proposal: a person decides."""
    agent = note_shapes.agent_of(caller, ask.agent)
    reader = await writing.reader(desk.resources, caller.credential, agent)
    who = await writing.author(desk.resources, caller.credential, reader)
    asked, added = await distilling.ask(desk.resources, who, caller.credential.lookup_key, ask.source)
    desk.ring(added)
    return Requested(id=distillations.opaque(asked))


@router.get(
    "/{distillation}",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_WRITE, 404, 422, body=False, of_a_person=False),
)
async def read_distillation(distillation: _Id, desk: AtDesk, caller: Calling, agent: AgentQuery = None) -> Distillation:
    """What came of a request of the agent's; to a reviewer who names none, of anybody's."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.viewer_of(caller, agent))
    async with desk.resources.database.begin(reader.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, reader.space)
        found = await distillations.find(connection, reader, UUID(distillation.removeprefix("dst_")))
    if found is None:
        raise problems.not_found()
    return Distillation.model_validate(
        {
            "id": distillation,
            "state": found.state,
            "reason": found.reason,
            "proposal_id": None if found.proposal is None else proposals.opaque(found.proposal),
            "asked_at": found.asked_at,
            "finished_at": found.finished_at,
        }
    )
