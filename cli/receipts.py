"""`afterturn receipts`: the chain written to a file, and checked, with or without the server; a new key to sign it."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from cli import spaces
from cli.output import answer, remark
from cli.reach import with_stores
from cli.verify import audit_of, offline, read_key, read_signed, report, stray
from gateways import signing
from jobs.resources import Resources
from models import seal as seals
from models.database import driver
from privacy.receipt_audit import Audit


def export(space: str, out: Path | None, data_dir: Path | None) -> None:
    """Writes the public keys and the chain, one JSON document a line."""

    async def written(resources: Resources) -> None:
        place = await spaces.find(resources.database, space)
        through, head = await _head(resources, place.id)
        with out.open("w") if out else sys.stdout as file:
            file.write(json.dumps(head) + "\n")
            async for link in _chain(resources, place.id, through):
                file.write(json.dumps(link) + "\n")

    with_stores(data_dir, written)


def verify(
    space: str,
    file: Path | None,
    checkpoint: Path | None,
    public_key: str | None,
    certificate: Path | None,
    data_dir: Path | None,
    *,
    as_json: bool,
) -> None:
    """Checks a chain (of a file, else of the space), or a certificate; Failed names each thing that is not as sealed."""
    if file is not None or certificate is not None:
        offline(file, checkpoint, public_key, certificate, as_json=as_json)
        return
    known = None if public_key is None else read_key(public_key)
    kept = None if checkpoint is None else read_signed(checkpoint)
    audit, found = with_stores(data_dir, lambda resources: _audited(resources, space, known, kept))
    report(audit, found, as_json=as_json)


def rotate_key(data_dir: Path | None, *, as_json: bool) -> None:
    """A new key signs from now on; each space's chain tells of it with its next seal."""

    async def rotated(resources: Resources) -> signing.Signer:
        return await signing.rotate(resources.keys)

    signer = with_stores(data_dir, rotated)
    told = {"key_id": signer.key_id, "key": signer.public.hex()}
    answer(told, [f"id   {signer.key_id}", f"key  {signer.public.hex()}"], as_json=as_json)
    if not as_json:
        remark("The old key stays good for what it signed; a verifier that knows either knows both.")


async def _audited(
    resources: Resources, space: str, known: bytes | None, checkpoint: Mapping[str, Any] | None
) -> tuple[Audit, list[str]]:
    place = await spaces.find(resources.database, space)
    through, head = await _head(resources, place.id)
    audit = audit_of(head, known, checkpoint)
    found = list(audit.begin())
    async for link in _chain(resources, place.id, through):
        found += audit.follow(link)
    return audit, [*found, *audit.end(), *stray(head["strays"])]


async def _head(resources: Resources, space: int) -> tuple[int, dict[str, Any]]:
    """The newest seal's number, and what is needed to check the chain up to it: its keys are read after it was made."""
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        through, strays = await seals.newest(connection, space), await seals.strays(connection, space)
    keys = {name: key.hex() for name, key in (await signing.public_keys(resources.keys)).items()}
    return through, {"keys": keys, "handovers": await signing.handovers(resources.keys), "strays": strays}


async def _chain(resources: Resources, space: int, through: int) -> AsyncIterator[dict[str, Any]]:
    number = 0
    while number < through:
        async with resources.database.begin(space) as tx:
            links = await seals.chain(await driver(tx), space, number, through)
        if not links:
            return
        for link in links:
            yield link
        number = links[-1]["number"]
