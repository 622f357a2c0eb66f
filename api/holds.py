"""/v1/holds: a person's data must not be deleted."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.problems import Problem
from models import erasing as erasures
from models import hold as holds
from models import receipt as receipts
from models import subject as subjects
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt

router = APIRouter(prefix="/v1/holds", route_class=Door, strict_content_type=False)

_Profile = Annotated[str, Path(pattern="^sub_[0-9a-f]{32}$", description="The subject's opaque id: sub_…")]


class HoldStands(BaseModel):
    """Whether the person's data are held now."""

    profile_id: str
    held: bool


@router.put("/{profile_id}", **opens(Scope.OPERATOR, 404, 409, 422, body=False, of_a_person=False))
async def place_hold(profile_id: _Profile, desk: AtDesk, caller: Calling) -> HoldStands:
    """Stops every deletion of the person's data. What is past its term stays unserved."""
    credential, subject = caller.credential, UUID(profile_id.removeprefix("sub_"))
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        if not await subjects.closure(connection, credential.space, subject):
            if await erasures.is_of(connection, credential.space, subject):
                raise Problem(409, "erasure_in_progress", "The person is being erased, or was")
            raise problems.not_found()
        if await holds.place(connection, credential.space, subject, credential.key_id):
            await receipts.write(
                connection, Receipt(credential.space, credential.key_id, "hold.placed", {"subject": profile_id})
            )
    return HoldStands(profile_id=profile_id, held=True)


@router.delete("/{profile_id}", **opens(Scope.OPERATOR, 404, 422, body=False, of_a_person=False))
async def lift_hold(profile_id: _Profile, desk: AtDesk, caller: Calling) -> HoldStands:
    """Ends a hold: the next sweep deletes what was due meanwhile."""
    credential, subject = caller.credential, UUID(profile_id.removeprefix("sub_"))
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        if not await holds.lift(connection, credential.space, subject):
            raise problems.not_found()
        await receipts.write(
            connection, Receipt(credential.space, credential.key_id, "hold.lifted", {"subject": profile_id})
        )
    return HoldStands(profile_id=profile_id, held=False)
