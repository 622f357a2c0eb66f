"""/v1/agents: which vendor's an agent is, and whom it belongs to."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import asyncpg
from fastapi import APIRouter, Path
from pydantic import BaseModel

from api import problems
from api.desk import AtDesk, Calling, Desk
from api.document import opens
from api.door import Door
from api.problems import Problem
from api.shapes import AgentName, AnyId, Ask
from gateways.key_store import KeyGone
from intake.accept import SubjectErased
from models import agent as agents
from models import receipt as receipts
from models import subject as subjects
from models.agent import Registered
from models.api_key import Credential, Scope
from models.columns import utc_now
from models.database import driver
from models.receipt import Receipt
from models.subject import SEALED_HANDLE, HandleKind

router = APIRouter(prefix="/v1/agents", route_class=Door, strict_content_type=False)

_Agent = Annotated[AgentName, Path(description="The agent's name, as turns have it.")]


class AgentAsk(Ask):
    """The whole registration. Who answers for the agent, and the employee who works with it, are handles of kind `owner`."""

    vendor: AgentName
    owner: AnyId | None = None
    owner_employee: AnyId | None = None


class AgentRegistered(BaseModel):
    """`owner` and `owner_employee` are null where nobody was named, or whoever was is erased."""

    agent: str
    vendor: str
    owner: str | None
    owner_employee: str | None
    registered_at: datetime


@router.put("/{agent}", **opens(Scope.SECURITY, 404, 409, of_a_person=False))
async def register_agent(agent: _Agent, ask: AgentAsk, desk: AtDesk, caller: Calling) -> AgentRegistered:
    """Says whose the agent is. Within a second it is to keys of other vendors as if it did not exist."""
    credential, arrived = caller.credential, utc_now()
    caller.speak_for(agent, "corporate")
    if credential.vendor not in (None, ask.vendor):
        raise problems.invalid(("vendor", "takes the key's own vendor"))
    for _ in range(3):  # what this process knows of an owner may be of before an erasure
        people = [await _subject(desk, credential, who) for who in (ask.owner, ask.owner_employee)]
        if await desk.people.is_from_before(credential.space, arrived, *filter(None, people)):
            raise SubjectErased
        try:
            registered = await _register(desk, credential, agent, ask.vendor, people)
            return await _shown(desk, credential, agent, registered)
        except asyncpg.ForeignKeyViolationError:
            desk.people.forget(*people)
    raise problems.not_found()


@router.get("/{agent}", **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def read_agent(agent: _Agent, desk: AtDesk, caller: Calling) -> AgentRegistered:
    """An agent's registration."""
    credential = caller.credential
    caller.speak_for(agent, "corporate")
    async with desk.resources.database.begin(credential.space) as tx:
        registered = await agents.find(await driver(tx), credential.space, agent)
    if registered is None:
        raise problems.not_found()
    return await _shown(desk, credential, agent, registered)


async def _subject(desk: Desk, credential: Credential, owner: str | None) -> UUID | None:
    if owner is None:
        return None
    return await desk.people.subject(credential.space, credential.lookup_key, (HandleKind.OWNER, owner), make=True)


async def _register(
    desk: Desk, credential: Credential, agent: str, vendor: str, people: list[UUID | None]
) -> Registered:
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        registered = await agents.register(connection, credential.space, agent, vendor, *people)
        if await agents.has_keys_of_others(connection, credential.space, agent, vendor):
            raise Problem(409, "vendor_differs", "A living key of this agent is for another vendor: revoke it first")
        await receipts.write(
            connection, Receipt(credential.space, credential.key_id, "agent.registered", {"agent": agent})
        )
    return registered


async def _shown(desk: Desk, credential: Credential, agent: str, registered: Registered) -> AgentRegistered:
    owner, employee = [await _called(desk, credential.space, who) for who in (registered.owner, registered.employee)]
    return AgentRegistered(
        agent=agent, vendor=registered.vendor, owner=owner, owner_employee=employee, registered_at=registered.since
    )


async def _called(desk: Desk, space: int, subject: UUID | None) -> str | None:
    """The handle of kind `owner`; None where the person was erased meanwhile."""
    if subject is None:
        return None
    async with desk.resources.database.begin(space) as tx:
        found = await subjects.handles(await driver(tx), space, [subject])
    try:
        key = await desk.resources.keys.key(subject)
    except KeyGone:
        return None
    return next((key.open(sealed, SEALED_HANDLE) for _, kind, sealed in found if kind == HandleKind.OWNER), None)
