"""/v1/agent-state: what an agent's code keeps between turns. Its scope comes in the body, for an id may be a phone number."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import AgentName, AnyId, Ask
from intake.state import Said, StateIntake
from memory.state import Mode, ScopeKind
from models import state as states
from models import subject as subjects
from models.api_key import Scope
from models.database import driver
from models.subject import HandleKind
from privacy.hashing import fold
from recall import state as reading

router = APIRouter(prefix="/v1", route_class=Door, strict_content_type=False)

_OBJECT_PARTS = 3
_Profile = Annotated[str, Path(pattern="^sub_[0-9a-f]{32}$", description="The subject's opaque id: sub_…")]


def _told(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("takes an instant as RFC 3339 writes it")  # noqa: TRY004 - pydantic takes no other
    return value


_Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_told)]
_Generation = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


def _of_people(kind: HandleKind) -> HandleKind:
    if kind is HandleKind.KEY:
        raise ValueError("takes a kind of handle that people have")
    return kind


class ScopeAsk(Ask):
    """`id`: the conversation's or the task's id, `type:namespace:id` of an object, `handle_kind:handle` of a customer."""

    kind: Annotated[ScopeKind, Field(strict=False)]
    id: AnyId

    def named(self) -> tuple[ScopeKind, str]:
        """The kind, and the form of the id in which two spellings are equal. A problem for what names nothing."""
        if self.kind is ScopeKind.SUBJECT:
            kind, handle = self.handle()
            return self.kind, f"{kind}:{fold(kind, handle)}"
        parts = self.id.split(":", _OBJECT_PARTS - 1)
        if self.kind is ScopeKind.OBJECT and not (len(parts) == _OBJECT_PARTS and all(parts)):
            raise problems.invalid(("scope.id", "takes type:namespace:id"))
        return self.kind, self.id

    def handle(self) -> tuple[HandleKind, str]:
        """Whose state it is."""
        kind, _, handle = self.id.partition(":")
        if kind not in set(HandleKind) - {HandleKind.KEY} or not fold(kind, handle):
            raise problems.invalid(("scope.id", "takes handle_kind:handle, as email:…"))
        return HandleKind(kind), handle


class SubjectAsk(Ask):
    """A customer, by one of their handles."""

    handle_kind: Annotated[HandleKind, Field(strict=False), AfterValidator(_of_people)]
    handle: AnyId


class StateAsk(Ask):
    """Names one state."""

    scope: ScopeAsk
    agent: AgentName


class StatePut(StateAsk):
    """A write. `cas`: `body` is the whole; `merge_by_key`: each of its fields replaces that one, or removes it."""

    mode: Annotated[Mode, Field(strict=False)] = Mode.MERGE
    body: Annotated[dict[str, Any], Field(description='A merge takes {"$delete": true} for a field that is to go.')]
    if_version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        None, description="The version that must stand; 0: none. `cas` needs it."
    )
    if_generation: _Generation | None = Field(None, description="The life that the version is of.")
    written_at: _Instant | None = Field(None, description="When it was written, where it was kept back meanwhile.")
    subject: SubjectAsk | None = Field(None, description="The customer, where the scope does not name them.")

    @model_validator(mode="after")
    def _needs_a_version(self) -> "StatePut":
        if self.mode is Mode.CAS and self.if_version is None:
            raise problems.invalid(("if_version", "is missing"))
        return self

    def said(self) -> Said:
        own = [self.scope.handle()] if self.scope.kind is ScopeKind.SUBJECT else []
        told = [] if self.subject is None else [(self.subject.handle_kind, self.subject.handle)]
        return Said(
            scope=self.scope.named(),
            agent=self.agent,
            mode=self.mode,
            body=self.body,
            subjects=(*own, *told),
            if_version=self.if_version,
            if_generation=self.if_generation,
            written_at=self.written_at,
        )


class Written(BaseModel):
    """`reason`, where nothing was stored: `not_declared_field` or `over_cap`. `version` and `generation` are those that stand."""

    stored: bool
    version: int
    reason: str | None
    generation: str | None


class StateRead(BaseModel):
    """A state never written: an empty body at version 0. `expires_at` has the end of every field that there is."""

    body: dict[str, Any]
    version: int
    generation: str | None
    updated_at: datetime | None
    expires_at: dict[str, datetime]


class StateShown(BaseModel):
    """A state from outside: never what it says."""

    agent: str
    scope: ScopeKind
    version: int
    generation: str
    fields: int
    bytes: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime


class StatesShown(BaseModel):
    """The states about a person, the last written first; at most a thousand."""

    states: list[StateShown]


@router.put("/agent-state", **opens(Scope.AGENT_STATE, 409, 412))
async def put_state(ask: StatePut, desk: AtDesk, caller: Calling) -> Written:
    """Stores the state, or says why it stays as it was."""
    caller.speak_for(ask.agent, "corporate")
    desk.meters.count_ignored(caller.claim.ignored)
    intake = StateIntake(desk.resources, desk.people, desk.intake.rules, desk.intake.called)
    outcome = await intake.write(caller.credential, caller.claim, ask.said())
    return Written(stored=outcome.stored, version=outcome.version, reason=outcome.reason, generation=outcome.generation)


@router.post("/agent-state/read", **opens(Scope.AGENT_STATE))
async def read_state(ask: StateAsk, desk: AtDesk, caller: Calling) -> StateRead:
    """The state as it was written last. What has expired is not in it."""
    caller.speak_for(ask.agent, "corporate")
    desk.meters.count_ignored(caller.claim.ignored)
    found = await reading.read(desk.resources, caller.credential, ask.scope.named(), ask.agent)
    return StateRead(
        body=dict(found.body),
        version=found.version,
        generation=found.generation,
        updated_at=found.updated_at,
        expires_at=dict(found.expires_at),
    )


@router.get("/profiles/{profile_id}/agent-state", **opens(Scope.PROFILES_READ, 404, 422, body=False, of_a_person=False))
async def list_states(profile_id: _Profile, desk: AtDesk, caller: Calling) -> StatesShown:
    """Which states there are about a person: size, version and dates."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        people = await subjects.closure(connection, space, UUID(profile_id.removeprefix("sub_")))
        if not people:
            raise problems.not_found()
        rows = await states.of_people(connection, space, people)
    return StatesShown(states=[_shown(row) for row in rows])


def _shown(row: dict[str, Any]) -> StateShown:
    return StateShown(
        agent=row["agent"],
        scope=row["scope_kind"],
        version=row["version"],
        generation=row["generation"].hex,
        fields=row["fields"],
        bytes=row["bytes"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        expires_at=row["expires_at"],
    )
