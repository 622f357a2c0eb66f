"""Erase: everything that an accepted erasure named, batch by batch, until a scan by other means finds nothing left.

Acceptance has fixed the ids, raised the fence and stopped every read; what is left is to delete, to look, and to
prove it. Each batch is a transaction of its own, so that a worker may die at any point, and nobody waits for a lock.
"""

from dataclasses import replace
from uuid import UUID

import structlog

from gateways import signing
from jobs import certificate
from jobs.letters import observe_letter, seal_letter
from jobs.residue import Look, look
from jobs.resources import Workshop
from jobs.verdict import Done, Later, Nothing, Verdict
from models import erasing as erasures
from models import log as logs
from models import receipt as receipts
from models import retraction, work
from models import seal as seals
from models.announcement import Event, announce
from models.columns import utc_now
from models.database import Connection, driver
from models.dataset import DataSet, Filed, Place, Target, Walked
from models.erasing import Erasing
from models.receipt import Receipt
from models.registry import DATA_SETS
from models.work import Claim

_BATCH = 5_000  # rows of one transaction
_UNTIL_SEALED = 2.0  # seconds between looks for the receipt's seal

# A batch sees expired rows, goes by the indexes whatever the planner's numbers say, and does not wait for the disk: one
# that a crash undoes is found and deleted again, and nothing is claimed of it before the scan.
_LIGHTLY = """
SELECT set_config('afterturn.space', $1, true), set_config('afterturn.expired', 'seen', true),
       set_config('enable_seqscan', 'off', true), set_config('synchronous_commit', 'off', true)
"""

_log = structlog.get_logger()


async def erase(claim: Claim, workshop: Workshop) -> Verdict:
    """One erasure, from where it stands to its certificate."""
    erasing = await _read(claim, workshop)
    if erasing is None or erasing.state == "completed":
        return Nothing()
    if erasing.receipt is None:
        await delete(claim, erasing, workshop)
        left = await _verify(claim, erasing, workshop)
        if not left.clean:
            _log.error("residue_found", erasure=str(erasing.id), places=sorted(left.found))
            return Later(None, "residue")
    return await _complete(claim, workshop)


async def _read(claim: Claim, workshop: Workshop) -> Erasing | None:
    async with workshop.database.begin(claim.space_id) as tx:
        return await erasures.find(await driver(tx), claim.space_id, UUID(claim.payload["erasure"]))


async def delete(claim: Claim, erasing: Erasing, workshop: Workshop) -> None:
    """Every data set, until each has nothing of the target left."""
    elsewhere = await _elsewhere(erasing, workshop)
    for data_set in DATA_SETS:
        left = erasing.target
        if isinstance(data_set, Filed) and workshop.packages is not None:
            for folder in data_set.folders(left):
                await workshop.packages.remove(folder)
        if isinstance(data_set, Walked):
            await _walk_through(claim, erasing, data_set, workshop)
            left = replace(left, logs=(), conversations=left.conversations if elsewhere else ())
        while await _delete_batch(claim, erasing, data_set, left, workshop):
            pass
    if elsewhere:
        await _observe_anew(erasing, elsewhere, workshop)


async def _elsewhere(erasing: Erasing, workshop: Workshop) -> list[int]:
    """One pass over the person's turns, while they are there, saves several over what is left of them."""
    async with workshop.database.pool.acquire() as connection, connection.transaction():
        await connection.execute(_LIGHTLY, str(erasing.space))
        return await retraction.elsewhere(connection, erasing.target)


async def _observe_anew(erasing: Erasing, log_ids: list[int], workshop: Workshop) -> None:
    """What lines of the erased stood on besides waits in the logs that stay: it is due as anything that waits."""
    async with workshop.database.begin(erasing.space) as tx:
        found = [log for log_id in log_ids if (log := await logs.by_id(tx, erasing.space, log_id))]
        now = utc_now()
        letters = [
            (observe_letter(log.space_id, log.id), due) for log in found if (due := workshop.rhythm.due(log, now))
        ]
        await work.add_many(await driver(tx), letters)


async def _walk_through(claim: Claim, erasing: Erasing, data_set: Walked, workshop: Workshop) -> None:
    place: Place | None = (0, 0)
    while place is not None:
        place = await _walk(claim, erasing, data_set, place, workshop)


async def _walk(claim: Claim, erasing: Erasing, data_set: Walked, place: Place, workshop: Workshop) -> Place | None:
    async with workshop.database.pool.acquire() as connection, connection.transaction():
        await connection.execute(_LIGHTLY, str(claim.space_id))
        gone, after = await data_set.walk(connection, erasing.target, place, _BATCH)
        await _note(connection, claim, erasing, data_set.name, gone)
    return after


async def _delete_batch(claim: Claim, erasing: Erasing, data_set: DataSet, left: Target, workshop: Workshop) -> int:
    async with workshop.database.pool.acquire() as connection, connection.transaction():
        await connection.execute(_LIGHTLY, str(claim.space_id))
        gone = await data_set.erase(connection, left, _BATCH)
        await _note(connection, claim, erasing, data_set.name, gone)
    return gone


async def _note(connection: Connection, claim: Claim, erasing: Erasing, data_set: str, gone: int) -> None:
    total = await erasures.count(connection, erasing, data_set, gone)
    await work.advance(connection, claim, {"data_set": data_set, "rows": total})


async def _verify(claim: Claim, erasing: Erasing, workshop: Workshop) -> Look:
    """Looks everywhere. Clean: a receipt says so. Not clean: it is to be seen, and to be erased again."""
    async with workshop.database.begin(claim.space_id) as tx:
        await erasures.move(await driver(tx), erasing, "verifying", {})
    left = await look(workshop, erasing.target)
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        if left.clean:
            receipt = await receipts.write(connection, await _receipt(connection, claim, erasing))
            await erasures.prove(connection, erasing, left.record(), receipt)
            await work.add(connection, seal_letter(claim.space_id))
        else:
            await erasures.reopen(connection, erasing, left.found)
        await work.advance(connection, claim, {"residue": sum(left.found.values())})
    return left


async def _receipt(connection: Connection, claim: Claim, erasing: Erasing) -> Receipt:
    now = await erasures.find(connection, claim.space_id, erasing.id)
    counts = {} if now is None else now.counts
    return Receipt(claim.space_id, f"job:{claim.kind}", "erasure.verified", {"erasure": str(erasing.id)}, counts)


async def _complete(claim: Claim, workshop: Workshop) -> Verdict:
    """The certificate, once the receipt's place in the chain can be proven."""
    erasing = await _read(claim, workshop)
    if erasing is None or erasing.receipt is None:
        return Nothing()
    async with workshop.database.begin(claim.space_id) as tx:
        proof = await seals.proof(await driver(tx), claim.space_id, erasing.receipt)
    if proof is None:
        return Later(_UNTIL_SEALED, "waits_for_its_seal", counts=False)
    signed = (await signing.load(workshop.keys)).signed(certificate.document(erasing, proof))
    async with workshop.database.begin(claim.space_id) as tx:
        connection = await driver(tx)
        await erasures.finish(connection, erasing, signed)
        await announce(connection, claim.space_id, Event.ERASURE_COMPLETED, {"erasure": str(erasing.id)})
        await work.complete(connection, claim)
    _log.info("erasure_completed", erasure=str(erasing.id))
    return Done()
