"""/v1/webhooks: who is told that something happened. Ids only; the secret is shown once."""

import base64
import json
import os
import time
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from api import problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.problems import Problem
from api.shapes import Ask
from gateways.webhook_sender import Refused, address, message_id
from models import receipt as receipts
from models import webhook as webhooks
from models.announcement import Event
from models.api_key import Scope
from models.columns import utc_now
from models.database import Connection, driver
from models.receipt import Receipt
from models.webhook import SEALED_SECRETS, SEALED_URL, Webhook
from privacy.sealing import SealingKey

router = APIRouter(prefix="/v1/webhooks", route_class=Door, strict_content_type=False)

_OVERLAP = 86_400  # seconds that the secret before signs too
_Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="The webhook's name in its space.")]


class WebhookAsk(Ask):
    """The whole endpoint."""

    url: str = Field(min_length=1, max_length=2_000, description="Over https, without user and password.")
    events: list[str] = Field(min_length=1, max_length=16, json_schema_extra={"items": {"enum": list(Event)}})
    rotate: bool = Field(default=False, description="A new secret; the one before signs beside it for a day.")


class WebhookShown(BaseModel):
    """How an endpoint stands. Parked: not delivered within a day, or its endpoint is gone."""

    name: str
    url: str
    events: list[str]
    disabled: bool
    waiting: int
    delivered: int
    parked: int
    last_error: str | None
    created_at: datetime


class WebhookSet(WebhookShown):
    """`secret` is there when it is new, and never again."""

    secret: str | None = None


class WebhookList(BaseModel):
    """By name."""

    webhooks: list[WebhookShown]


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    PARKED = "parked"


class DeliveryShown(BaseModel):
    """`id` is the webhook-id under which it is sent. `attempts` since it was first due, or sent back."""

    id: str
    event: str
    state: DeliveryState
    attempts: int
    error: str | None
    created_at: datetime
    due_at: datetime | None = Field(description="When it is tried next, where it waits.")
    finished_at: datetime | None


class DeliveryPage(BaseModel):
    """Newest first. `next` is the `before` of the next page, absent on the last one."""

    deliveries: list[DeliveryShown]
    next: int | None = None


class Retried(BaseModel):
    """How many parked deliveries are due again."""

    retried: int


@router.get("", **opens(Scope.SECURITY, body=False, of_a_person=False))
async def list_webhooks(desk: AtDesk, caller: Calling) -> WebhookList:
    """Every endpoint of the space, and where its deliveries stand."""
    credential = caller.credential
    async with desk.resources.database.begin(credential.space) as tx:
        rows = await webhooks.listed(await driver(tx), credential.space)
    key = await desk.resources.keys.key(credential.lookup_key)
    return WebhookList(webhooks=[WebhookShown(**_shown(row, key)) for row in rows])


@router.get("/{name}", **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def read_webhook(name: _Name, desk: AtDesk, caller: Calling) -> WebhookShown:
    """One endpoint, and where its deliveries stand."""
    credential = caller.credential
    key = await desk.resources.keys.key(credential.lookup_key)
    async with desk.resources.database.begin(credential.space) as tx:
        return WebhookShown(**await _read(await driver(tx), credential.space, name, key))


@router.put("/{name}", **opens(Scope.SECURITY, of_a_person=False))
async def set_webhook(name: _Name, ask: WebhookAsk, desk: AtDesk, caller: Calling) -> WebhookSet:
    """Makes an endpoint, or changes it and enables it again. `rotate` gives it a new secret."""
    credential = caller.credential
    await _check(ask, allow_private=desk.resources.settings.webhooks.webhooks_allow_private)
    key = await desk.resources.keys.key(credential.lookup_key)
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        kept = await webhooks.sealed_secrets(connection, credential.space, name)
        secrets, secret = _secrets([] if kept is None else json.loads(key.open(kept, SEALED_SECRETS)), ask)
        row = Webhook(
            id=uuid4(),
            space_id=credential.space,
            name=name,
            url=key.seal(ask.url, SEALED_URL),
            secrets=key.seal(json.dumps(secrets), SEALED_SECRETS),
            events=sorted(set(ask.events)),
            disabled=False,
        )
        if await webhooks.put(connection, row) and secret is None:
            raise problems.not_found()  # removed meanwhile
        await receipts.write(
            connection, Receipt(credential.space, credential.key_id, "webhook.changed", {"webhook": name})
        )
        return WebhookSet(**await _read(connection, credential.space, name, key), secret=secret)


@router.delete("/{name}", status_code=204, **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def remove_webhook(name: _Name, desk: AtDesk, caller: Calling) -> Response:
    """Removes an endpoint, and what it was still to be told."""
    credential = caller.credential
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        if not await webhooks.remove(connection, credential.space, name):
            raise problems.not_found()
        await receipts.write(
            connection, Receipt(credential.space, credential.key_id, "webhook.removed", {"webhook": name})
        )
    return Response(status_code=204)


@router.get("/{name}/deliveries", **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def list_deliveries(
    name: _Name,
    desk: AtDesk,
    caller: Calling,
    state: DeliveryState | None = None,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> DeliveryPage:
    """What an endpoint was told in the last 30 days, and what it is still to be told."""
    space = caller.credential.space
    async with desk.resources.database.begin(space) as tx:
        connection = await driver(tx)
        if not await webhooks.listed(connection, space, name):
            raise problems.not_found()
        rows = await webhooks.deliveries(connection, space, name, state, before, limit + 1)
    page = [DeliveryShown(**{**row, "id": message_id(row["announcement_id"])}) for row in rows[:limit]]
    return DeliveryPage(deliveries=page, next=rows[limit - 1]["id"] if len(rows) > limit else None)


@router.post("/{name}/retry", **opens(Scope.SECURITY, 404, 422, body=False, of_a_person=False))
async def retry_webhook(name: _Name, desk: AtDesk, caller: Calling) -> Retried:
    """Sends what is parked once more, for a day."""
    credential = caller.credential
    async with desk.resources.database.begin(credential.space) as tx:
        connection = await driver(tx)
        if await webhooks.sealed_secrets(connection, credential.space, name) is None:
            raise problems.not_found()
        retried = await webhooks.retry(connection, credential.space, name, utc_now())
        ids, counts = {"webhook": name}, {"deliveries": retried}
        await receipts.write(connection, Receipt(credential.space, credential.key_id, "webhook.retried", ids, counts))
    return Retried(retried=retried)


async def _check(ask: WebhookAsk, *, allow_private: bool) -> None:
    if set(ask.events) - set(Event):
        raise Problem(422, "unknown_event", f"Events are {', '.join(Event)}")
    try:
        await address(ask.url, allow_private=allow_private)
    except Refused as refused:
        raise Problem(422, "url_refused", f"The URL is refused: {refused}") from None


def _secrets(kept: list[dict[str, Any]], ask: WebhookAsk) -> tuple[list[dict[str, Any]], str | None]:
    """What signs from now on, and the new one of them, if any."""
    if kept and not ask.rotate:
        return kept, None
    secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
    return [{"secret": secret, "until": None}, *({**one, "until": time.time() + _OVERLAP} for one in kept[:1])], secret


async def _read(connection: Connection, space: int, name: str, key: SealingKey) -> dict[str, Any]:
    rows = await webhooks.listed(connection, space, name)
    if not rows:
        raise problems.not_found()
    return _shown(rows[0], key)


def _shown(row: Any, key: SealingKey) -> dict[str, Any]:
    counts = {state: row[state] for state in ("waiting", "delivered", "parked")}
    rest = {member: row[member] for member in ("name", "events", "disabled", "created_at")}
    return {**rest, **counts, "url": key.open(row["url"], SEALED_URL), "last_error": row["error"]}
