"""Receipts that can be checked by anybody: canonical bytes, Merkle trees, chained and signed seals. Pure.

A seal commits to its receipts by the root of their tree (RFC 9162) and to all earlier seals by the hash of the one
before. It is signed (Ed25519) over its canonical JSON (RFC 8785), so that who owns the database cannot write another
history, and its running total shows a tail that was cut off.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

BEGINNING = bytes(32)  # what the first seal of a space has for a predecessor
_LEAF, _NODE = b"\x00", b"\x01"  # RFC 9162: a leaf can never pass for a node
SEAL, EXPIRY = "afterturn.seal", "afterturn.receipts-expired"  # a signature under one kind never passes for another
_CHECKED = ("algorithm", "key_id", "value")


@dataclass(frozen=True, slots=True)
class Tree:
    """Where a leaf stands in a tree: its index, the number of leaves, and the hashes beside its way up."""

    index: int
    size: int
    path: tuple[bytes, ...]


def moment(at: datetime) -> str:
    """An instant as it is hashed: UTC, always six digits. PostgreSQL keeps microseconds, so nothing is lost."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical(document: Mapping[str, Any]) -> bytes:
    """RFC 8785 bytes. Strings, whole numbers, lists and objects only: a float's text is not the same everywhere."""
    return rfc8785.dumps(dict(document))


def leaf_hash(receipt: Mapping[str, Any]) -> bytes:
    """The hash of one receipt, as `models.receipt.leaf` shapes it."""
    return hashlib.sha256(_LEAF + canonical(receipt)).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes, in order. Of none: the hash of nothing."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return _node(root(leaves[:middle]), root(leaves[middle:]))


def inclusion(leaves: Sequence[bytes], index: int) -> Tree:
    """The proof that leaf `index` is under `root(leaves)`."""
    return Tree(index, len(leaves), tuple(_path(leaves, index)))


def includes(tree: Tree, leaf: bytes, expected: bytes) -> bool:
    """Whether the proof leads from the leaf to the root."""
    if not 0 <= tree.index < tree.size:
        return False
    place, last, reached = tree.index, tree.size - 1, leaf
    for beside in tree.path:
        if last == 0:
            return False
        if place & 1 or place == last:
            reached = _node(beside, reached)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            reached = _node(reached, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and reached == expected


def seal_document(
    space: int, number: int, previous: bytes, leaves: Sequence[bytes], total: int, at: str
) -> dict[str, Any]:
    """What a seal says and is signed over. `total` counts every receipt of the space up to here."""
    return {
        "kind": SEAL,
        "version": 1,
        "space": str(space),
        "number": number,
        "previous": previous.hex(),
        "root": root(leaves).hex(),
        "size": len(leaves),
        "total": total,
        "at": at,
    }


def expiry_document(space: int, through: int, at: str) -> dict[str, Any]:
    """What is signed when receipts expire: those of the space's seals up to number `through` are gone rightly."""
    return {"kind": EXPIRY, "version": 1, "space": str(space), "through": through, "at": at}


def seal_hash(document: Mapping[str, Any]) -> bytes:
    """What the next seal commits to."""
    return hashlib.sha256(canonical(document)).digest()


def sign(document: Mapping[str, Any], key: Ed25519PrivateKey, key_id: str) -> dict[str, str]:
    """The signature over a document's canonical bytes, and whose it is."""
    return {"algorithm": "Ed25519", "key_id": key_id, "value": b64encode(key.sign(canonical(document))).decode()}


def is_signed(document: Mapping[str, Any], signature: Mapping[str, Any], public: bytes) -> bool:
    """Whether the signature over the document was made by the key behind the 32 public bytes."""
    if sorted(signature) != sorted(_CHECKED) or signature["algorithm"] != "Ed25519":
        return False
    try:
        value = b64decode(signature["value"], validate=True)
        Ed25519PublicKey.from_public_bytes(public).verify(value, canonical(document))
    except (InvalidSignature, ValueError, TypeError, rfc8785.CanonicalizationError):
        return False
    return True


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def _path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    if len(leaves) <= 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*_path(leaves[:middle], index), root(leaves[middle:])]
    return [*_path(leaves[middle:], index - middle), root(leaves[:middle])]


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(_NODE + left + right).digest()
