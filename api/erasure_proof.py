"""/v1/erasures/{id}/certificate and /verify: the proof of an erasure, and looking anew."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.problems import Problem
from jobs.letters import erase_letter
from jobs.residue import Look, look
from jobs.resources import Resources
from models import erasing as erasures
from models import work
from models.api_key import Scope
from models.database import driver
from models.erasing import Erasing
from models.work import Added

router = APIRouter(prefix="/v1/erasures", route_class=Door, strict_content_type=False)

_Id = Annotated[UUID, Path()]


class LookedAt(BaseModel):
    """How much was looked at."""

    tables: int
    columns: int
    rows: int
    redis_keys: int


class Verified(BaseModel):
    """`found` names places, with the number of rows there that still hold something of the erased. Empty: none does."""

    id: UUID
    at: datetime
    clean: bool
    looked_at: LookedAt
    found: dict[str, int]


@router.get("/{erasure}/certificate", **opens(Scope.OPERATOR, 404, 409, 422, body=False, of_a_person=False))
async def read_certificate(erasure: _Id, desk: AtDesk, caller: Calling) -> dict[str, Any]:
    """The signed certificate, which can be checked without this server."""
    found = await _find(desk.resources, caller.credential.space, erasure)
    if found.certificate is None:
        raise Problem(409, "erasure_not_completed", "The erasure is not completed: there is no certificate yet")
    return dict(found.certificate)


@router.get("/{erasure}/verify", **opens(Scope.OPERATOR, 404, 422, body=False, of_a_person=False))
async def verify_erasure(erasure: _Id, desk: AtDesk, caller: Calling) -> Verified:
    """Looks everywhere again. What is found of a completed erasure is erased again, and its certificate is void."""
    found = await _find(desk.resources, caller.credential.space, erasure)
    left = await look(desk.resources, found.target)
    if found.state == "completed" and not left.clean:
        desk.ring(await _again(desk.resources, found, left))
    return Verified(id=erasure, **left.record())


async def _find(resources: Resources, space: int, erasure: UUID) -> Erasing:
    async with resources.database.begin(space) as tx:
        found = await erasures.find(await driver(tx), space, erasure)
    if found is None:
        raise problems.not_found()
    return found


async def _again(resources: Resources, found: Erasing, left: Look) -> list[Added]:
    async with resources.database.begin(found.space) as tx:
        connection = await driver(tx)
        await erasures.reopen(connection, found, left.found)
        return await work.add_many(connection, [(erase_letter(found.space, found.id), None)])
