"""/v1/features: what a space has switched on."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from phonenumbers import SUPPORTED_REGIONS
from pydantic import AfterValidator, BaseModel, Field

from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import Ask, Region
from models import note_book
from models import policy as policies
from models import receipt as receipts
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt

router = APIRouter(prefix="/v1/features", route_class=Door, strict_content_type=False)


def _known(regions: list[str]) -> list[str]:
    if not set(regions) <= SUPPORTED_REGIONS:
        raise ValueError("takes regions by two letters of ISO 3166, as US")
    return list(dict.fromkeys(regions))


Regions = Annotated[list[Region], Field(max_length=300), AfterValidator(_known)]
Ceiling = Annotated[int, Field(ge=1, le=10_000)]


class FeaturesAsk(Ask):
    """A member that is absent stays as it is."""

    agent_memory: bool = False
    agent_state: bool = False
    contexts: bool = Field(default=False, description="Corporate and personal memory are kept apart.")
    agent_memory_writes: Literal["agent", "human_only"] = "agent"
    note_ceiling: Ceiling = note_book.CEILING
    notes_per_hour: Ceiling = note_book.PER_HOUR
    refusals_per_hour: Ceiling = Field(
        default=note_book.REFUSALS,
        description="Notes of one key that held personal data; more of them tell who is a customer.",
    )
    phone_regions: Regions = Field(default=[], description="Whose numbers count without their country.")


class Features(BaseModel):
    """All of them; `phone_regions` empty: the deployment's."""

    agent_memory: bool
    agent_state: bool
    contexts: bool
    agent_memory_writes: Literal["agent", "human_only"]
    note_ceiling: int
    notes_per_hour: int
    refusals_per_hour: int
    phone_regions: list[str]


@router.get("", **opens(Scope.SECURITY, body=False, of_a_person=False))
async def read_features(desk: AtDesk, caller: Calling) -> Features:
    """What is on."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        return _shown(await policies.features(await driver(tx), space))


@router.put("", **opens(Scope.SECURITY, of_a_person=False))
async def set_features(ask: FeaturesAsk, desk: AtDesk, caller: Calling) -> Features:
    """Sets the members that are there. Every process goes by them a second later."""
    credential, said = caller.credential, ask.model_dump(exclude_unset=True)
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        features = await policies.change_features(connection, credential.space, said)
        receipt = Receipt(credential.space, credential.key_id, "features.changed", {"features": sorted(said)})
        await receipts.write(connection, receipt)
    return _shown(features)


def _shown(features: dict[str, Any]) -> Features:
    known = {name: value for name, value in features.items() if name in FeaturesAsk.model_fields}
    return Features(**(FeaturesAsk().model_dump() | known))
