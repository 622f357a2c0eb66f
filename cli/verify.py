"""A program of its own that checks receipts: `python -m cli.verify --file chain.jsonl`. No server, no settings, no database.

Exit code 0: all holds. 1: something is not as it was sealed, and named. 2: it was asked for in a way that cannot be done.
"""

import argparse
import json
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.failure import Ended, Failed, WrongUse
from cli.output import answer, remark
from privacy import receipt_proof
from privacy.handover import Trust, trust
from privacy.receipt_audit import Audit

_OWN_KEY = "The keys are the file's own: --public-key, kept elsewhere, shows that nobody put in his own."
_NOBODY = Trust({}, {})


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m cli.verify", description=__doc__)
    parser.add_argument("--file", type=Path, help="a chain that `afterturn receipts export` wrote")
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint kept elsewhere: shows a tail that was cut off")
    parser.add_argument("--public-key", help="the key to trust, in hex, base64, or a file that holds it")
    parser.add_argument("--certificate", type=Path, help="an erasure's certificate")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    asked = parser.parse_args(arguments)
    try:
        offline(asked.file, asked.checkpoint, asked.public_key, asked.certificate, as_json=asked.json)
    except Ended as ended:
        remark(str(ended))
        return ended.exit_code
    return 0


def offline(
    file: Path | None, checkpoint: Path | None, public_key: str | None, certificate: Path | None, *, as_json: bool
) -> None:
    """Checks a chain's file, a certificate, or both; Failed when something is not as it was sealed."""
    if file is None and certificate is None:
        raise WrongUse("--file or --certificate says what to check")
    known = None if public_key is None else read_key(public_key)
    if known is None:
        remark(_OWN_KEY)
    seen: dict[str, int] = {}
    holds, found, tied = list[str](), list[str](), _NOBODY
    if file is not None:
        audit, found = _chain(file, known, None if checkpoint is None else read_signed(checkpoint))
        seen, holds, tied = audit.seen(), [_all(audit)], audit.trust
    if certificate is not None:
        found += check_certificate(read_signed(certificate), known, tied)
        holds.append("The certificate holds, and its receipt is under a signed seal.")
    _report(seen, holds, found, as_json=as_json)


def report(audit: Audit, found: Sequence[str], *, as_json: bool) -> None:
    """What the audit of a chain came to; Failed when something was found."""
    _report(audit.seen(), [_all(audit)], found, as_json=as_json)


def _all(audit: Audit) -> str:
    return f"All holds: {audit.seals} seals, {audit.total} receipts."


def _report(seen: Mapping[str, int], holds: Sequence[str], found: Sequence[str], *, as_json: bool) -> None:
    answer({"valid": not found, **seen, "found": list(found)}, found or holds, as_json=as_json)
    if found:
        raise Failed(f"{len(found)} things are not as they were sealed")


def audit_of(head: Mapping[str, Any], known: bytes | None, checkpoint: Mapping[str, Any] | None) -> Audit:
    """The audit of a chain by its head: `keys` in hex by id, `handovers`. With a known key, that one and what it is tied to."""
    try:
        keys = {str(name): bytes.fromhex(key) for name, key in head["keys"].items()}
        tied = trust({name: key for name, key in keys.items() if known in (None, key)}, head["handovers"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise WrongUse("--file takes what `afterturn receipts export` wrote") from None
    return Audit(tied, checkpoint)


def check_certificate(certificate: Mapping[str, Any], known: bytes | None, chain: Trust = _NOBODY) -> list[str]:
    """Its signature, and that its receipt is under a signed seal. A chain checked beside it says which keys are trusted."""
    try:
        own = {str(certificate["signature"]["key_id"]): b64decode(certificate["public_key"], validate=True)}
        handovers = certificate.get("handovers", ())
        start = chain.keys or {name: key for name, key in trust(own, handovers).keys.items() if known in (None, key)}
        return list(_flaws(certificate, trust(start, handovers)))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return [f"the certificate does not read as one ({type(error).__name__})"]


def stray(receipts: Sequence[str]) -> list[str]:
    """What is said of receipts that claim a seal which is not there."""
    return [f"receipt {one} was added: no seal has it" for one in receipts]


def read_key(text: str) -> bytes:
    """A public key in hex or base64, or a file of it, which may be the answer of `/v1/receipts/key` as it came."""
    text = _told(Path(text).read_text().strip()) if Path(text).is_file() else text
    for read in (bytes.fromhex, b64decode):
        try:
            key = read(text)
        except ValueError:
            continue
        if len(key) == 32:
            return key
    raise WrongUse("--public-key takes 32 bytes in hex or base64, or a file that holds them")


def _told(text: str) -> str:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return str(document.get("key")) if isinstance(document, dict) else text


def read_signed(path: Path) -> dict[str, Any]:
    """A file that holds one signed document."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        raise WrongUse(f"{path} does not read as JSON") from None
    parts = [document.get(part) for part in ("document", "signature")] if isinstance(document, dict) else [None]
    if not all(isinstance(part, dict) for part in parts):
        raise WrongUse(f"{path} holds no signed document")
    return dict(document)


def _chain(file: Path, known: bytes | None, checkpoint: Mapping[str, Any] | None) -> tuple[Audit, list[str]]:
    lines = _lines(file)
    head = next(lines, {})
    audit = audit_of(head, known, checkpoint)
    return audit, [*audit.walk(lines), *stray(head.get("strays", ()))]


def _flaws(certificate: Mapping[str, Any], tied: Trust) -> Iterator[str]:
    if not _signed(certificate, tied):
        yield "the certificate's signature was not made by a known key"
    proof = certificate["document"]["receipt"]["proof"]
    seal = proof["seal"]
    if seal["document"].get("kind") != receipt_proof.SEAL or not _signed(seal, tied):
        yield "the seal over the certificate's receipt was not signed by a known key"
    tree = receipt_proof.Tree(proof["index"], proof["size"], tuple(map(bytes.fromhex, proof["path"])))
    root = bytes.fromhex(seal["document"]["root"])
    if not receipt_proof.includes(tree, receipt_proof.leaf_hash(proof["receipt"]), root):
        yield "the certificate's receipt is not under its seal"


def _signed(one: Mapping[str, Any], tied: Trust) -> bool:
    public = tied.keys.get(one["signature"].get("key_id", ""))
    return public is not None and receipt_proof.is_signed(one["document"], one["signature"], public)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open() as opened:
            for line in opened:
                yield json.loads(line)
    except (OSError, ValueError, RecursionError):
        raise WrongUse(f"{file} does not read as lines of JSON") from None


if __name__ == "__main__":
    sys.exit(main())
