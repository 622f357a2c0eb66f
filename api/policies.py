"""/v1/policies/masking: what becomes of each kind of personal data before anything is written."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.shapes import Ask, Region
from models import policy as policies
from models import receipt as receipts
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt
from privacy.kind import KINDS
from privacy.policy import Operator, Policy, PolicyError

router = APIRouter(prefix="/v1/policies/masking", route_class=Door, strict_content_type=False)

_TAKEN = [operator.value for operator in Operator]
_KNOWN: Any = {"propertyNames": {"enum": sorted(KINDS)}, "additionalProperties": {"enum": _TAKEN}}
_OPERATORS = Field(
    description=f"By kind: {', '.join(_TAKEN)}. A kind that is not named is replaced.", json_schema_extra=_KNOWN
)


class MaskingAsk(Ask):
    """The whole document."""

    operators: Annotated[dict[str, str], _OPERATORS] = Field(default={}, max_length=len(KINDS))
    regions: Annotated[list[Region], Field(max_length=300, json_schema_extra={"uniqueItems": True})] = Field(
        default=[], description="Whose phone numbers count without their country; none named: the features' regions."
    )


class MaskingPolicy(BaseModel):
    """`version` is 0 until a document was set; `regions` are those that are gone by."""

    version: int
    operators: dict[str, str]
    regions: list[str]


@router.get("", **opens(Scope.SECURITY, body=False, of_a_person=False))
async def read_masking(desk: AtDesk, caller: Calling) -> MaskingPolicy:
    """The space's rules."""
    credential = caller.credential
    async with desk.resources.database.begin(credential.space) as tx:
        rules = await policies.rules(await driver(tx), credential.space)
    return _shown(await desk.intake.rules.read(rules, credential.lookup_key))


@router.put("", **opens(Scope.SECURITY, of_a_person=False))
async def set_masking(ask: MaskingAsk, desk: AtDesk, caller: Calling) -> MaskingPolicy:
    """Sets the rules. Every process masks by them a second later; what is stored already stays as it is."""
    credential = caller.credential
    document = ask.model_dump(exclude_unset=True, exclude=None if ask.regions else {"regions"})
    for kind, operator in ask.operators.items():
        if operator not in _TAKEN:
            raise problems.invalid((_path(f"operators.{kind}"), f"takes {', '.join(_TAKEN)}"))
    try:
        await desk.intake.rules.check(document, credential.lookup_key)
    except PolicyError as error:
        raise problems.invalid((_path(error.path), error.why)) from None
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        version = await policies.change_masking(connection, credential.space, document)
        receipt = Receipt(credential.space, credential.key_id, "masking.changed", {"version": version})
        await receipts.write(connection, receipt)
        rules = await policies.rules(connection, credential.space)
    return _shown(await desk.intake.rules.read(rules, credential.lookup_key))


def _path(path: str) -> str:
    """Without a name that is none of ours: it may be anybody's words."""
    member, _, kind = path.partition(".")
    return path if not kind or kind in KINDS else member


def _shown(policy: Policy) -> MaskingPolicy:
    operators = {kind: operator.value for kind, operator in sorted(policy.operators.items())}
    return MaskingPolicy(version=policy.version, operators=operators, regions=[*policy.regions])
