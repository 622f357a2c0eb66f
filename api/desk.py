"""What the endpoints work with: made once per process, handed to each."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.auth import Caller, Doorman
from api.gate import Gate
from api.meters import Meters, Reader
from api.readiness import Readiness
from intake.accept import Intake
from intake.identity import Identity, People
from intake.messages import Limits
from jobs.bell import Bell
from jobs.resources import Resources
from models.work import Added
from recall.agent_block import Blocks

CALLER = "afterturn.caller"  # where the door leaves it in the request's scope


@dataclass(frozen=True, slots=True)
class Desk:
    """`bell` rings in `tasks`, beside the requests: none waits for Redis."""

    resources: Resources
    limits: Limits
    doorman: Doorman
    gate: Gate
    people: People
    intake: Intake
    meters: Meters
    reader: Reader
    readiness: Readiness
    blocks: Blocks
    bell: Bell
    tasks: asyncio.TaskGroup

    async def whose(self, caller: Caller) -> Identity:
        """Whose memory a request reads. Nobody is made by a read."""
        self.meters.count_ignored(caller.claim.ignored)
        return await self.people.find(caller.credential, caller.claim)

    def ring(self, added: Iterable[Added]) -> None:
        """Wakes the workers up, after the commit."""
        self.tasks.create_task(self.bell.ring(added))


def desk_of(request: Request) -> Desk:
    """The desk of the application that serves the request."""
    desk: Desk = request.app.state.desk
    return desk


def caller_of(request: Request) -> Caller:
    """Who calls, as the door found out."""
    caller: Caller = request.scope[CALLER]
    return caller


async def _desk(request: Request) -> Desk:
    return desk_of(request)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


AtDesk = Annotated[Desk, Depends(_desk)]
Calling = Annotated[Caller, Depends(_caller)]
