"""`afterturn receipts`: the chain written to a file, and checked, with or without the server."""

import json
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import spaces
from cli.failure import Failed, WrongUse
from cli.output import answer, remark
from cli.reach import with_stores
from gateways import signing
from jobs.resources import Resources
from models import seal as seals
from models.database import driver
from privacy import receipt_proof
from privacy.receipt_audit import Audit

_AT_ONCE = 50  # seals read in one go


def export(space: str, out: Path | None, data_dir: Path | None) -> None:
    """Writes the public keys and the chain, one JSON document a line."""

    async def written(resources: Resources) -> None:
        place = await spaces.find(resources.database, space)
        keys = {name: key.hex() for name, key in (await signing.public_keys(resources.keys)).items()}
        with out.open("w") if out else sys.stdout as file:
            file.write(json.dumps({"keys": keys}) + "\n")
            async for link in _chain(resources, place.id):
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
    known = None if public_key is None else _key(public_key)
    if certificate is not None:
        found = list(_check_certificate(_read(certificate), known))
        _report({}, "The certificate holds, and its receipt is under a signed seal.", found, as_json=as_json)
        return
    kept = None if checkpoint is None else _read(checkpoint)
    audit, found = (
        with_stores(data_dir, lambda resources: _audited(resources, space, known, kept))
        if file is None
        else _audited_file(file, known, kept)
    )
    seen = {"seals": audit.seals, "receipts": audit.total}
    _report(seen, f"All holds: {audit.seals} seals, {audit.total} receipts.", found, as_json=as_json)


async def _audited(
    resources: Resources, space: str, known: bytes | None, checkpoint: Mapping[str, Any] | None
) -> tuple[Audit, list[str]]:
    place = await spaces.find(resources.database, space)
    audit = Audit(_trusted(await signing.public_keys(resources.keys), known), checkpoint)
    links = [link async for link in _chain(resources, place.id)]
    return audit, list(audit.walk(links))


def _audited_file(file: Path, known: bytes | None, checkpoint: Mapping[str, Any] | None) -> tuple[Audit, list[str]]:
    lines = _lines(file)
    head = next(lines, {})
    if "keys" not in head:
        raise WrongUse("--file takes what `afterturn receipts export` wrote")
    if known is None:
        remark("The keys are the file's own: --public-key, kept elsewhere, shows that nobody put in his own.")
    audit = Audit(_trusted({name: bytes.fromhex(key) for name, key in head["keys"].items()}, known), checkpoint)
    return audit, list(audit.walk(lines))


def _trusted(keys: Mapping[str, bytes], known: bytes | None) -> dict[str, bytes]:
    """All keys, or, where one was given, that one alone."""
    return {name: key for name, key in keys.items() if known is None or key == known}


async def _chain(resources: Resources, space: int) -> AsyncIterator[dict[str, Any]]:
    number = 0
    while True:
        async with resources.database.begin(space) as tx:
            links = await seals.chain(await driver(tx), space, number, _AT_ONCE)
        for link in links:
            yield link
        if len(links) < _AT_ONCE:
            return
        number = links[-1]["document"]["number"]


def _check_certificate(certificate: Mapping[str, Any], known: bytes | None) -> Iterator[str]:
    """Its signature, and that its receipt is under a signed seal."""
    public = b64decode(certificate.get("public_key", ""))
    if known is not None and public != known:
        yield "the certificate was signed with another key than --public-key"
    if not receipt_proof.is_signed(certificate["document"], certificate["signature"], public):
        yield "the certificate's signature does not hold"
    proof = certificate["document"].get("receipt", {}).get("proof", {})
    yield from _check_proof(proof, public)


def _check_proof(proof: Mapping[str, Any], public: bytes) -> Iterator[str]:
    seal = proof.get("seal")
    if seal is None:
        yield "the certificate carries no proof of its receipt"
        return
    if not receipt_proof.is_signed(seal["document"], seal["signature"], public):
        yield "the seal over the certificate's receipt does not hold"
    tree = receipt_proof.Tree(proof["index"], proof["size"], tuple(map(bytes.fromhex, proof["path"])))
    if not receipt_proof.includes(
        tree, receipt_proof.leaf_hash(proof["receipt"]), bytes.fromhex(seal["document"]["root"])
    ):
        yield "the certificate's receipt is not under its seal"


def _report(seen: Mapping[str, int], holds: str, found: Sequence[str], *, as_json: bool) -> None:
    answer({"valid": not found, **seen, "found": list(found)}, list(found) or [holds], as_json=as_json)
    if found:
        raise Failed(f"{len(found)} things are not as they were sealed")


def _key(text: str) -> bytes:
    """A public key in hex or base64, or a file of it."""
    text = Path(text).read_text().strip() if Path(text).is_file() else text
    for read in (bytes.fromhex, b64decode):
        try:
            key = read(text)
        except ValueError:
            continue
        if len(key) == 32:
            return key
    raise WrongUse("--public-key takes 32 bytes in hex or base64, or a file that holds them")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        raise WrongUse(f"{path} does not read as JSON") from None
    if not isinstance(document, dict) or not {"document", "signature"} <= document.keys():
        raise WrongUse(f"{path} holds no signed document")
    return document


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open() as file:
            for line in file:
                yield json.loads(line)
    except (OSError, ValueError):
        raise WrongUse(f"{path} does not read as lines of JSON") from None
