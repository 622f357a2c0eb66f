"""/v1/holds: a person's data must not be deleted."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.problems import Problem
from jobs.letters import expire_letter
from models import hold as holds
from models import receipt as receipts
from models import work
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt
from models.subject import opaque

router = APIRouter(prefix="/v1/holds", route_class=Door, strict_content_type=False)

_Profile = Annotated[str, Path(pattern="^sub_[0-9a-f]{32}$", description="The subject's opaque id: sub_…")]


class HoldStands(BaseModel):
    """Whether the person's data are held now."""

    profile_id: str
    held: bool


class Hold(BaseModel):
    """`profile_id` is the subject that it was placed on, `covers` that one and whoever is the same person."""

    profile_id: str
    covers: list[str]
    actor: str
    placed_at: datetime


class Holds(BaseModel):
    """Oldest first."""

    holds: list[Hold]


@router.get("", **opens(Scope.OPERATOR, body=False, of_a_person=False))
async def list_holds(desk: AtDesk, caller: Calling) -> Holds:
    """What holds there are."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        placed = await holds.listed(await driver(tx), space)
    return Holds(
        holds=[
            Hold(
                profile_id=opaque(one.named),
                covers=[opaque(subject) for subject in one.covers],
                actor=one.actor,
                placed_at=one.placed_at,
            )
            for one in placed
        ]
    )


@router.put("/{profile_id}", **opens(Scope.OPERATOR, 404, 409, 422, body=False, of_a_person=False))
async def place_hold(profile_id: _Profile, desk: AtDesk, caller: Calling) -> HoldStands:
    """Stops every deletion of the person's data, whoever is confirmed to be the same person included.

    What is past its term stays unserved.
    """
    credential, subject = caller.credential, UUID(profile_id.removeprefix("sub_"))
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        try:
            placed = await holds.place(connection, credential.space, subject, credential.key_id)
        except holds.BeingErased:
            raise Problem(409, "erasure_in_progress", "The person is being erased, or was") from None
        except holds.Nobody:
            raise problems.not_found() from None
        if placed:
            await receipts.write(
                connection, Receipt(credential.space, credential.key_id, "hold.placed", {"subject": profile_id})
            )
    return HoldStands(profile_id=profile_id, held=True)


@router.delete("/{profile_id}", **opens(Scope.OPERATOR, 404, 422, body=False, of_a_person=False))
async def lift_hold(profile_id: _Profile, desk: AtDesk, caller: Calling) -> HoldStands:
    """Ends a hold, and what was due meanwhile is deleted. `held`: another one covers the person still."""
    credential, subject = caller.credential, UUID(profile_id.removeprefix("sub_"))
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        if not await holds.lift(connection, credential.space, subject):
            raise problems.not_found()
        await receipts.write(
            connection, Receipt(credential.space, credential.key_id, "hold.lifted", {"subject": profile_id})
        )
        still = await holds.held(connection, credential.space, [subject])
        added = await work.add(connection, expire_letter(credential.space))
    desk.ring([] if added is None else [added])
    return HoldStands(profile_id=profile_id, held=still)
