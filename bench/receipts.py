"""What does a receipt cost the act that leaves it? Eight writers mint keys, with a receipt each, against the same without.

Minting a key is the cheapest act that leaves a receipt: one row, in one transaction. A third way has them sealed all the
time meanwhile, in the same process. The chain that comes of it is checked.
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
from models import api_key
from models import receipt as receipts
from models import seal as seals
from models.api_key import ApiKey
from models.database import driver
from models.receipt import Receipt
from models.subject import HandleKind
from privacy.handover import trust
from privacy.hashing import api_secret_digest
from privacy.receipt_audit import Audit

_WRITERS, _APPENDS = 8, 60  # in one round: short ones, so that whatever else runs weighs on both ways
_EVERY = 0.1  # seconds between two looks of the sequencer, which is far oftener than the scheduler has it
_WAYS = ("without", "receipted", "while_sealing")


async def measure(rounds: int) -> dict[str, object]:
    """The medians of the ways and of their ratios in each round, and whether the chain that came of it holds."""
    async with service(**OFFLINE) as there:
        space = (await spaces.find_or_make(there.resources.database, there.resources.keys, spaces.DEFAULT)).id
        await _round(there, space, 50, "receipted")  # warm
        rates = {way: list[float]() for way in _WAYS}
        for number in range(rounds):
            for way in _WAYS[:: 1 if number % 2 else -1]:
                rates[way].append(await _round(there, space, _APPENDS, way))
                await _seal_all(there, space)
            remark(f"round {number + 1}: {', '.join(f'{way} {rates[way][-1]:.0f}/s' for way in _WAYS)}")
        found, total = await _checked(there, space)
    assert total == _WRITERS * (2 * _APPENDS * rounds + 50), f"{total} receipts are sealed"
    assert not found, found
    return {
        "writers": _WRITERS,
        "appends": _WRITERS * _APPENDS * rounds,
        **{f"{way}_a_second": round(statistics.median(rates[way])) for way in _WAYS},
        "ratio": _ratio(rates["receipted"], rates["without"]),
        "ratio_while_sealing": _ratio(rates["while_sealing"], rates["without"]),
        "sealed": total,
    }


def _ratio(ours: list[float], plain: list[float]) -> float:
    return round(statistics.median(one / other for one, other in zip(ours, plain, strict=True)), 2)


async def _round(there: Service, space: int, appends: int, way: str) -> float:
    began = time.perf_counter()
    sealing = asyncio.create_task(_seal_on(there, space)) if way == "while_sealing" else None
    await asyncio.gather(*(_write(there, space, appends, receipt=way != "without") for _ in range(_WRITERS)))
    took = time.perf_counter() - began
    if sealing is not None:
        sealing.cancel()
        await asyncio.gather(sealing, return_exceptions=True)
    return _WRITERS * appends / took


async def _write(there: Service, space: int, appends: int, *, receipt: bool) -> None:
    for _ in range(appends):
        key_id = f"key_{uuid4().hex}"
        key = ApiKey(
            id=key_id,
            space_id=space,
            name="bench",
            secret_digest=api_secret_digest(key_id),
            scopes=["memory:read"],
            owner_subject=uuid4(),
            owner_kind=HandleKind.KEY,
        )
        async with there.resources.database.begin(space) as tx:
            connection = await driver(tx)
            await api_key.mint(connection, key)
            if receipt:
                act = Receipt(space, "key_bench", "key.minted", {"key": key_id, "scopes": key.scopes})
                await receipts.write(connection, act)


async def _seal_on(there: Service, space: int) -> None:
    while True:
        await _seal(there, space)
        await asyncio.sleep(_EVERY)


async def _seal(there: Service, space: int) -> int:
    signer = await signing.load(there.resources.keys)
    async with there.resources.database.begin(space) as tx:
        return await seals.seal_next(await driver(tx), space, signer)


async def _seal_all(there: Service, space: int) -> None:
    while await _seal(there, space):
        pass


async def _checked(there: Service, space: int) -> tuple[list[str], int]:
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
    parser.add_argument("--long", action="store_true", help="more rounds")
    rounds = 200 if parser.parse_args().long else 30

    async def bench() -> None:
        tell("receipts", "ratio >= 0.8", **await measure(rounds))

    run(bench)


if __name__ == "__main__":
    main()
