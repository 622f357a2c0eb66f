"""Expire: what is past its term in one space is deleted, a small batch at a time. Nobody is served it meanwhile."""

import time
from dataclasses import dataclass

import structlog

from gateways import signing
from jobs.letters import expire_letter
from jobs.resources import Resources, Workshop
from jobs.verdict import Done, Verdict
from models import receipt as receipts
from models import retention, seal, work
from models.database import driver
from models.dataset import see_expired
from models.receipt import Receipt
from models.registry import DATA_SETS
from models.work import Added, Claim

_BATCH = 1_000  # rows of one transaction
_EVERY = 60.0  # seconds

_log = structlog.get_logger()


async def expire(claim: Claim, workshop: Workshop) -> Verdict:
    """Every data set that has a term, until nothing of it is past. One receipt says how much went."""
    gone = {data_set.name: await _sweep(claim, workshop, data_set.name) for data_set in DATA_SETS}
    gone["receipts"] = await _sweep_receipts(claim, workshop)
    counts = {name: rows for name, rows in gone.items() if rows}
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        if counts:
            await receipts.write(
                connection, Receipt(claim.space_id, f"job:{claim.kind}", "retention.swept", {}, counts)
            )
        await work.complete(connection, claim)
    _log.info("expired_rows_deleted", space=claim.space_id, rows=sum(counts.values()))
    return Done()


@dataclass(slots=True)
class Sweeps:
    """Makes the sweep due wherever something can be past its term, once a minute: nobody is served it meanwhile."""

    resources: Resources
    _next: float = 0.0

    async def due(self) -> list[Added]:
        """For the scheduler, at each of its rounds."""
        if time.monotonic() < self._next:
            return []
        self._next = time.monotonic() + _EVERY
        return await _due(self.resources)


async def _due(resources: Resources) -> list[Added]:
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        return await work.add_many(
            connection, [(expire_letter(space), None) for space in await retention.overdue(connection)]
        )


async def _sweep(claim: Claim, workshop: Workshop, name: str) -> int:
    total, gone = 0, _BATCH
    while gone:
        gone = await _batch(claim, workshop, name, total)
        total += gone
    return total


async def _batch(claim: Claim, workshop: Workshop, name: str, total: int) -> int:
    (data_set,) = (one for one in DATA_SETS if one.name == name)
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        gone = await data_set.expire(connection, claim.space_id, _BATCH)
        if gone:
            await work.advance(connection, claim, {"data_set": name, "rows": total + gone})
    return gone


async def _sweep_receipts(claim: Claim, workshop: Workshop) -> int:
    signer, total = await signing.load(workshop.keys), 0
    while gone := await _sweep_seals(claim, workshop, signer, total):
        total += gone
    return total


async def _sweep_seals(claim: Claim, workshop: Workshop, signer: signing.Signer, total: int) -> int:
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        before = await retention.horizon(connection, claim.space_id, "receipts")
        gone = 0 if before is None else await seal.expire(connection, claim.space_id, before, _BATCH, signer)
        if gone:
            await work.advance(connection, claim, {"data_set": "receipts", "rows": total + gone})
    return gone
