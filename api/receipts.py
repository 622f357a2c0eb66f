"""/v1/receipts: who did what to which ids, and the proof that the list is whole."""

from base64 import b64encode
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.problems import Problem
from gateways import signing
from models import receipt as receipts
from models import seal as seals
from models.api_key import Scope
from models.database import driver

router = APIRouter(prefix="/v1/receipts", route_class=Door, strict_content_type=False)

_Id = Annotated[str, Path(pattern="^rct_[0-9a-f]{32}$", description="As the list shows it: rct_…")]


class Receipt(BaseModel):
    """`actor` is a key's id, `cli:…` or `job:…`; `seal` is absent until the receipt is sealed."""

    id: str
    at: datetime
    actor: str
    action: str
    ids: dict[str, Any]
    counts: dict[str, int]
    seal: int | None = None


class ReceiptPage(BaseModel):
    """Oldest first. `next` is the `after` of the next page, absent on the last one."""

    receipts: list[Receipt]
    next: str | None = None


class PublicKey(BaseModel):
    """`key` signs now; `keys` are all that ever signed, by id: 32 bytes each, in base64.

    `handovers`, oldest first: how each key took over from the one before, signed by both.
    """

    key_id: str
    algorithm: str = "Ed25519"
    key: str
    keys: dict[str, str]
    handovers: list[dict[str, Any]]


@router.get("", response_model_exclude_none=True, **opens(Scope.RECEIPTS_READ, 404, 422, body=False, of_a_person=False))
async def list_receipts(
    desk: AtDesk,
    caller: Calling,
    after: Annotated[str | None, Query(pattern="^rct_[0-9a-f]{32}$")] = None,
    action: Annotated[str | None, Query(max_length=64, pattern="^[a-z_.]+$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ReceiptPage:
    """The space's receipts."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        rows = await receipts.listed(await driver(tx), space, _id(after) if after else None, action, limit + 1)
    if rows is None:
        raise problems.not_found()
    page = [Receipt(**row | {"id": receipts.opaque(row["id"])}) for row in rows[:limit]]
    return ReceiptPage(receipts=page, next=page[-1].id if len(rows) > limit else None)


@router.get("/checkpoint", **opens(Scope.RECEIPTS_READ, 404, body=False, of_a_person=False))
async def read_checkpoint(desk: AtDesk, caller: Calling) -> dict[str, Any]:
    """The newest signed seal. Kept elsewhere, it shows a tail that was cut off later."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        found = await seals.checkpoint(await driver(tx), space)
    if found is None:
        raise problems.not_found()
    return found


@router.get("/key", **opens(Scope.RECEIPTS_READ, body=False, of_a_person=False))
async def read_key(desk: AtDesk, caller: Calling) -> PublicKey:  # noqa: ARG001 - the key is every space's, but not everybody's to ask
    """The public half of the deployment's signing key."""
    signer = await signing.load(desk.resources.keys)
    keys = await signing.public_keys(desk.resources.keys)
    told = {key_id: b64encode(public).decode() for key_id, public in keys.items()}
    return PublicKey(
        key_id=signer.key_id, key=told[signer.key_id], keys=told, handovers=[dict(one) for one in signer.handovers]
    )


@router.get("/{receipt}/proof", **opens(Scope.RECEIPTS_READ, 404, 409, 422, body=False, of_a_person=False))
async def prove_receipt(receipt: _Id, desk: AtDesk, caller: Calling) -> dict[str, Any]:
    """That the signed chain holds the receipt."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        found = await seals.proof(connection, space, _id(receipt))
        known = found is not None or await receipts.exists(connection, space, _id(receipt))
    if not known:
        raise problems.not_found()
    if found is None:
        raise Problem(409, "receipt_not_sealed", "The receipt waits for its seal: ask again in a few seconds")
    return found


def _id(opaque: str) -> UUID:
    return UUID(opaque.removeprefix("rct_"))
