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
from models.dataset import DataSet, Spot, Swept, see_expired
from models.receipt import Receipt
from models.registry import DATA_SETS
from models.work import Added, Claim

_BATCH = 4_000  # rows of one transaction: whoever speaks in one of their logs waits for it
_EVERY, _WALK_EVERY = 60.0, 3600.0  # seconds

# A batch sees expired rows, goes by the indexes whatever the planner's numbers say, and does not wait for the disk: one
# that a crash undoes is found and deleted again, and the receipt is written after them all.
_LIGHTLY = """
SELECT set_config('afterturn.space', $1, true), set_config('afterturn.expired', 'seen', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('synchronous_commit', 'off', true)
"""

_log = structlog.get_logger()


async def expire(claim: Claim, workshop: Workshop) -> Verdict:
    """Every data set that has a term, until nothing of it is past. One receipt says how much went."""
    gone = {data_set.name: await _sweep(claim, workshop, data_set) for data_set in DATA_SETS}
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
    """Makes the sweep due where something is past its term: nobody is served it meanwhile.

    Once a minute where an index tells; once an hour wherever there are terms at all, for what only a walk can find.
    """

    resources: Resources
    _next: float = 0.0
    _walk: float = 0.0

    async def due(self) -> list[Added]:
        """For the scheduler, at each of its rounds."""
        now = time.monotonic()
        if now < self._next:
            return []
        walks = now >= self._walk
        async with self.resources.database.begin_everywhere() as tx:
            connection = await driver(tx)
            spaces = await (retention.with_terms if walks else retention.overdue)(connection)
            added = await work.add_many(connection, [(expire_letter(space), None) for space in spaces])
            await retention.forget_announced(connection, self.resources.settings.workers.job_records)
        self._next, self._walk = now + _EVERY, now + _WALK_EVERY if walks else self._walk
        return added


async def _sweep(claim: Claim, workshop: Workshop, data_set: DataSet) -> int:
    total, spot, more = 0, None, True
    while more:
        gone, spot, more = await _batch(claim, workshop, data_set, spot, total)
        total += gone
    return total


async def _batch(
    claim: Claim, workshop: Workshop, data_set: DataSet, spot: Spot | None, total: int
) -> tuple[int, Spot | None, bool]:
    """How many rows went, where to go on, and whether to."""
    async with workshop.database.pool.acquire() as connection, connection.transaction():
        await connection.execute(_LIGHTLY, str(claim.space_id))
        if isinstance(data_set, Swept):
            gone, spot = await data_set.sweep(connection, claim.space_id, spot, _BATCH)
            more = spot is not None
        else:
            gone = await data_set.expire(connection, claim.space_id, _BATCH)
            more = gone > 0
        if gone:
            await work.advance(connection, claim, {"data_set": data_set.name, "rows": total + gone})
    return gone, spot, more


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
