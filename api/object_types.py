"""/v1/object-types: which fields an agent's state has, what is personal in them, and how long each is kept."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import AgentName, Ask
from memory.state import DEFAULT_BYTES, MOST_BYTES, FieldType, ScopeKind
from models import object_type as object_types
from models import receipt as receipts
from models import state_rules
from models.api_key import Scope
from models.database import driver
from models.object_type import InvalidType
from models.receipt import Receipt

router = APIRouter(prefix="/v1/object-types", route_class=Door, strict_content_type=False)

FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
_Code = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)]
_Value = Annotated[str, StringConstraints(min_length=1, max_length=128)]
_Term = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}[smhd]$")]


class _Said(BaseModel):
    """Types as JSON has them, and no member that nobody knows."""

    model_config = ConfigDict(strict=True, extra="forbid")


class FieldDeclared(_Said):
    """One field. `values`: those that an enum takes; without them any string. `sensitivity` is the operator's own word."""

    type: Annotated[FieldType, Field(strict=False)]
    pii: bool = Field(default=False, description="Masked by the space's rules as it is written.")
    sensitivity: _Code | None = None
    values: Annotated[list[_Value], Field(min_length=1, max_length=200)] | None = None


class StateDeclared(_Said):
    """What an agent's state belongs to, how large it may be, and which writes it takes."""

    scope: Annotated[ScopeKind, Field(strict=False)]
    max_bytes: Annotated[int, Field(ge=2, le=MOST_BYTES)] = DEFAULT_BYTES
    write: Literal["cas", "merge_by_key", "both"] = "both"
    over_cap: Literal["keep_previous"] = "keep_previous"


class TypeDeclared(_Said):
    """`agent_state` goes with the ownership `agent`. `retention`: `state` (1d to 180d), and shorter terms of fields."""

    type: AgentName
    ownership: _Code
    fields: Annotated[dict[FieldName, FieldDeclared], Field(max_length=200)] = {}
    agent_state: StateDeclared | None = None
    retention: Annotated[dict[FieldName, _Term], Field(max_length=201)] = {}


class TypesAsk(Ask):
    """The whole document."""

    types: Annotated[list[TypeDeclared], Field(max_length=100)]


class ObjectTypes(BaseModel):
    """`version` is 0 until a document was set."""

    version: int
    types: list[dict[str, Any]]


@router.get("", **opens(Scope.SECURITY, body=False, of_a_person=False))
async def read_object_types(desk: AtDesk, caller: Calling) -> ObjectTypes:
    """What is declared."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        types, version = await object_types.read(await driver(tx), space)
    return ObjectTypes(version=version, types=types)


@router.put("", **opens(Scope.SECURITY, of_a_person=False))
async def set_object_types(ask: TypesAsk, desk: AtDesk, caller: Calling) -> ObjectTypes:
    """Sets the document, or nothing of it. Terms that are shorter than before hold at once, also for what is stored."""
    credential = caller.credential
    types = [one.model_dump(mode="json", exclude_unset=True) for one in ask.types]
    whole = [{"fields": {}} | one for one in types]
    try:
        object_types.check(whole)
    except InvalidType as error:
        raise problems.invalid((error.path, error.why)) from None
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        version = await object_types.change(connection, credential.space, whole)
        await state_rules.shorten(connection, credential.space, whole)
        receipt = Receipt(credential.space, credential.key_id, "object_types.changed", {"version": version})
        await receipts.write(connection, receipt)
    return ObjectTypes(version=version, types=whole)
