"""Deliver: what was announced is sent to a space's endpoints, each in its own order and at its own pace."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from gateways import webhook_sender
from gateways.webhook_sender import GONE, Message, is_refusal, message_id
from jobs.job import BackOff
from jobs.letters import deliver_letter
from jobs.resources import Resources, Workshop
from jobs.verdict import Done, Verdict
from models import webhook as webhooks
from models import work
from models.columns import utc_now
from models.database import Connection, driver
from models.webhook import SEALED_SECRETS, SEALED_URL, Due
from models.work import Added, Claim, Superseded

_AT_ONCE = 20.0  # seconds that one run goes on sending to an endpoint that answers
_EVERY = 1.0  # seconds
_BACK_OFF = BackOff(timedelta(seconds=10), timedelta(hours=1))

_log = structlog.get_logger()


async def deliver(claims: Sequence[Claim], workshop: Workshop) -> Verdict:
    """Each claim is one endpoint; all at once, so that none waits for one that is dead."""
    ends = await asyncio.gather(*(_deliver(claim, workshop) for claim in claims), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, Superseded):
            raise end
    return Done()


@dataclass(slots=True)
class Deliveries:
    """Makes the work due for every endpoint to which something can be sent, once a second."""

    resources: Resources
    _next: float = 0.0

    async def due(self) -> list[Added]:
        """For the scheduler, at each of its rounds."""
        if time.monotonic() < self._next:
            return []
        self._next = time.monotonic() + _EVERY
        async with self.resources.database.begin_everywhere() as tx:
            connection = await driver(tx)
            letters = [
                (deliver_letter(space, webhook), None)
                for space, webhook in await webhooks.waiting(connection, utc_now())
            ]
            return await work.add_many(connection, letters)


async def _deliver(claim: Claim, workshop: Workshop) -> None:
    webhook, until = UUID(claim.payload["webhook"]), time.monotonic() + _AT_ONCE
    while time.monotonic() < until and (due := await _next(claim, workshop, webhook)) is not None:
        await _note(claim, workshop, webhook, due, await _send(due, workshop))
    async with workshop.database.begin(claim.space_id) as tx:
        await work.complete(await driver(tx), claim)


async def _next(claim: Claim, workshop: Workshop, webhook: UUID) -> Due | None:
    async with workshop.database.begin(claim.space_id) as tx:
        return await webhooks.next_due(await driver(tx), claim.space_id, webhook, utc_now())


async def _send(due: Due, workshop: Workshop) -> str | None:
    key, now = await workshop.keys.key(due.space_key), utc_now()
    secrets = json.loads(key.open(due.secrets, SEALED_SECRETS))
    valid = [one["secret"] for one in secrets if one["until"] is None or one["until"] > now.timestamp()]
    said = {"type": due.event, "timestamp": due.at.isoformat(), "data": due.ids}
    message = Message(message_id(due.announcement), json.dumps(said, separators=(",", ":")).encode(), now)
    allow_private = workshop.settings.webhooks.webhooks_allow_private
    return await webhook_sender.send(key.open(due.url, SEALED_URL), valid, message, allow_private=allow_private)


async def _note(claim: Claim, workshop: Workshop, webhook: UUID, due: Due, error: str | None) -> None:
    now = utc_now()
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await work.advance(connection, claim, {"delivery": due.delivery})
        if error is None:
            await webhooks.delivered(connection, claim.space_id, webhook, due.delivery, now)
        elif error == GONE:
            await webhooks.disable(connection, claim.space_id, webhook, error, now)
        else:
            await _postpone(connection, claim.space_id, webhook, due, error, now)
    if error is not None:
        _log.info("webhook_not_delivered", space=claim.space_id, webhook=webhook.hex, error=error)


async def _postpone(connection: Connection, space: int, webhook: UUID, due: Due, error: str, now: datetime) -> None:
    """An endpoint that is down waits as a whole; what it would not take waits alone, and the rest goes on."""
    later = now + _BACK_OFF.delay(due.attempts + 1, random.uniform(0.5, 1.0))  # noqa: S311 - spreads tries
    refused = is_refusal(error)
    await webhooks.failed(connection, space, due.delivery, error, now, later if refused else now)
    if not refused:
        await webhooks.pause(connection, space, webhook, later)
