"""Seal: the receipts of one space that wait are ordered, chained to those before, and signed."""

import structlog

from gateways import signing
from jobs.letters import seal_letter
from jobs.resources import Resources, Workshop
from jobs.verdict import Done, Later, Verdict
from models import seal as seals
from models import work
from models.database import driver
from models.work import Added, Claim

_log = structlog.get_logger()

_OVERTAKEN = Later(0.0, "signing_key_changed", counts=False)


async def seal(claim: Claim, workshop: Workshop) -> Verdict:
    """One seal over what waits now. What is written meanwhile waits for the next."""
    signer = await signing.load(workshop.keys)
    try:
        async with workshop.database.begin(claim.space_id) as tx:
            connection = await driver(tx)
            count = await seals.seal_next(connection, claim.space_id, signer)
            await work.complete(connection, claim)
    except seals.Outdated:
        return _OVERTAKEN
    _log.info("receipts_sealed", space=claim.space_id, receipts=count)
    return Done()


async def due(resources: Resources) -> list[Added]:
    """Makes sealing due wherever a receipt waits for it: the scheduler asks at every sweep."""
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        letters = [(seal_letter(space), None) for space in await seals.waiting(connection)]
        return await work.add_many(connection, letters)
