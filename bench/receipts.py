"""What does a receipt cost the act that leaves it? Eight writers' effects with a receipt each, against the same without.

Sealing goes on meanwhile, as it does in a deployment. An effect is a row in a table of its own, in one transaction. Rounds
of both ways take turns, so that whatever else the machine does weighs on both.
"""

import argparse
import asyncio
import statistics
import time
from uuid import uuid4

from bench.report import remark, tell
from bench.service import OFFLINE, Service, run, service
from cli import spaces
from gateways import signing
from models import receipt as receipts
from models import seal as seals
from models.database import driver
from models.receipt import Receipt
from privacy.handover import trust
from privacy.receipt_audit import Audit

_WRITERS, _ROUNDS = 8, 9
_EVERY = 1.0  # seconds between two looks of the sequencer, which is oftener than the scheduler has it


async def measure(appends: int) -> dict[str, object]:
    """The median of each way and of the rounds' ratios, and whether the chain that came of it holds."""
    async with service(**OFFLINE) as there:
        space = (await spaces.find_or_make(there.resources.database, there.resources.keys, spaces.DEFAULT)).id
        await there.resources.database.pool.execute("CREATE TABLE effects (id uuid PRIMARY KEY, what text NOT NULL)")
        await _round(there, space, 50, receipt=True)  # warm
        plain, receipted = [], []
        for number in range(_ROUNDS):
            plain.append(await _round(there, space, appends, receipt=False))
            receipted.append(await _round(there, space, appends, receipt=True))
            remark(f"round {number + 1}: {plain[-1]:.0f} without, {receipted[-1]:.0f} with, a second")
        found, total = await _checked(there, space)
    assert total == _WRITERS * (appends * _ROUNDS + 50), f"{total} receipts are sealed"
    assert not found, found
    ratios = [withal / without for without, withal in zip(plain, receipted, strict=True)]
    return {
        "writers": _WRITERS,
        "appends": _WRITERS * appends,
        "without_a_second": round(statistics.median(plain)),
        "with_a_second": round(statistics.median(receipted)),
        "ratio": round(statistics.median(ratios), 2),
        "sealed": total,
    }


async def _round(there: Service, space: int, appends: int, *, receipt: bool) -> float:
    began = time.perf_counter()
    sealing = asyncio.create_task(_seal_on(there, space)) if receipt else None
    await asyncio.gather(*(_write(there, space, appends, receipt=receipt) for _ in range(_WRITERS)))
    took = time.perf_counter() - began
    if sealing is not None:
        sealing.cancel()
        await asyncio.gather(sealing, return_exceptions=True)
    return _WRITERS * appends / took


async def _write(there: Service, space: int, appends: int, *, receipt: bool) -> None:
    for _ in range(appends):
        effect = uuid4()
        async with there.resources.database.begin(space) as tx:
            connection = await driver(tx)
            await connection.execute("INSERT INTO effects VALUES ($1, 'done')", effect)
            if receipt:
                act = Receipt(space, "key_bench", "bench.done", {"effect": str(effect)}, {"rows": 1})
                await receipts.write(connection, act)


async def _seal_on(there: Service, space: int) -> None:
    while True:
        await _seal(there, space)
        await asyncio.sleep(_EVERY)


async def _seal(there: Service, space: int) -> int:
    signer = await signing.load(there.resources.keys)
    async with there.resources.database.begin(space) as tx:
        return await seals.seal_next(await driver(tx), space, signer)


async def _checked(there: Service, space: int) -> tuple[list[str], int]:
    while await _seal(there, space):
        pass
    audit, number = Audit(trust(await signing.public_keys(there.resources.keys), ())), 0
    found = list(audit.begin())
    while True:
        async with there.resources.database.begin(space) as tx:
            links = await seals.chain(await driver(tx), space, number, 1_000_000)
        if not links:
            return [*found, *audit.end()], audit.receipts
        number = links[-1]["number"]
        found += [finding for link in links for finding in audit.follow(link)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.receipts", description=__doc__)
    parser.add_argument("--long", action="store_true", help="more effects a round")
    appends = 2_000 if parser.parse_args().long else 250

    async def bench() -> None:
        tell("receipts", "ratio >= 0.8", **await measure(appends))

    run(bench)


if __name__ == "__main__":
    main()
