"""Erasing a person as the service does, driven by hand: accepted, claimed, run, settled."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from gateways import signing
from jobs.erase import erase
from jobs.letters import ERASE, erase_letter
from jobs.resources import Resources
from jobs.verdict import Later, Verdict
from models import claim as claims
from models import erasing as erasures
from models import release, work
from models import seal as seals
from models.claim import Rung, Terms
from models.database import driver
from models.dataset import Target
from models.erasing import Erasing
from models.retraction import retract
from models.work import Claim

WAITS = Later(2.0, "waits_for_its_seal", counts=False)
_TERMS = Terms("eraser", "interactive", (ERASE,), timedelta(seconds=60), 1_000)


async def accept(resources: Resources, space: int, subject: UUID, *, fenced: bool = True) -> UUID:
    """Fixes what a person has, and takes the person away, so that nobody can write about them. Answers the erasure."""
    erasure = uuid4()
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        await connection.execute("SELECT FROM subjects WHERE id = $1 FOR UPDATE", subject)
        logs = await connection.fetch("SELECT id FROM logs WHERE subject_id = $1 FOR UPDATE", subject)
        conversations = await connection.fetch("SELECT id FROM conversations WHERE subject_id = $1", subject)
        taken = [tuple(row["id"] for row in rows) for rows in (logs, conversations)]
        await retract(connection, Target(space, (subject,), *taken))
        ids = {"logs": [row["id"] for row in logs], "conversations": [row["id"] for row in conversations]}
        await connection.execute(
            "INSERT INTO erasures (id, space_id, kind, target, reason_code, actor)"
            " VALUES ($1, $2, 'subject', $3::text::jsonb, 'other', 'key_test')",
            *(erasure, space, json.dumps({"subjects": [subject.hex], **ids})),
        )
        if fenced:
            await connection.execute("DELETE FROM subjects WHERE id = $1", subject)
        await work.add(connection, erase_letter(space, erasure))
    await resources.keys.pool.execute("DELETE FROM wrapped_keys WHERE id = $1", subject)
    resources.keys.forget(subject)
    return erasure


async def claimed(resources: Resources, space: int) -> Claim:
    """The erasure that waits in a space, in a worker's hands."""
    row = await resources.database.pool.fetchrow(
        "UPDATE work SET run_at = least(run_at, now()) WHERE space_id = $1 AND kind = $2 AND state = 'ready'"
        " RETURNING id, epoch",
        *(space, ERASE),
    )
    assert row is not None, "nothing to erase"
    async with resources.database.pool.acquire() as connection:
        (claim,) = await claims.rung(connection, _TERMS, [Rung(row["id"], row["epoch"])], 1)
    return claim


async def run(resources: Any, space: int) -> Verdict:
    """One run of the waiting erasure, settled as a worker does."""
    claim = await claimed(resources, space)
    verdict = await erase(claim, resources)
    if isinstance(verdict, Later):
        async with resources.database.pool.acquire() as connection:
            await release.retry_later(connection, claim, timedelta(0), verdict.error, counts=verdict.counts)
    return verdict


async def seal(resources: Any, space: int) -> None:
    """Seals what waits in a space."""
    signer = await signing.load(resources.keys)
    async with resources.database.begin(space) as tx:
        await seals.seal_next(await driver(tx), space, signer)


async def finish(resources: Any, space: int) -> Verdict:
    """Runs the waiting erasure to its end: once to erase, and once more when its receipt is sealed."""
    first = await run(resources, space)
    assert first == WAITS
    await seal(resources, space)
    return await run(resources, space)


async def stands(resources: Resources, space: int, erasure: UUID) -> Erasing:
    """Where an erasure stands."""
    async with resources.database.begin(space) as tx:
        found = await erasures.find(await driver(tx), space, erasure)
    assert found is not None
    return found
