"""Checking a chain of receipts, with nothing but the chain, the public keys and a checkpoint kept elsewhere. Pure.

Each link is as `models.seal.chain` gives it: `document`, `signature`, `leaves` (hex), `expired`, `receipts`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privacy import receipt_proof


@dataclass(slots=True)
class Audit:
    """Walks the chain in order. What it finds names the seal and the receipt; nothing found means that all holds.

    `keys` are the public keys that may have signed, 32 bytes by id. `receipts` and `seals` count what was seen.
    """

    keys: Mapping[str, bytes]
    checkpoint: Mapping[str, Any] | None = None
    receipts: int = 0
    seals: int = 0
    total: int = 0
    _previous: bytes = receipt_proof.BEGINNING
    _number: int = 0
    _met_checkpoint: bool = field(default=False)

    def walk(self, chain: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Findings, one sentence each, as they come up."""
        if self.checkpoint is not None and not self._signed(self.checkpoint):
            yield "checkpoint: its signature was not made by a known key"
        for link in chain:
            try:
                yield from self._link(link)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                yield f"seal {self._number + 1}: it does not read as a seal ({type(error).__name__})"
        yield from self._ends()

    def _link(self, link: Mapping[str, Any]) -> Iterator[str]:
        document, number = link["document"], int(link["document"]["number"])
        name = f"seal {number}"
        if number != self._number + 1:
            yield f"{name}: seal {self._number + 1} was expected here"
        if document["previous"] != self._previous.hex():
            yield f"{name}: it does not follow from the seal before it"
        if not self._signed(link):
            yield f"{name}: its signature was not made by a known key"
        if document["total"] != self.total + document["size"]:
            yield f"{name}: it counts {document['total']} receipts where there are {self.total + document['size']}"
        yield from self._leaves(name, link)
        self._pass(document, number)
        if self.checkpoint is not None and self.checkpoint["document"]["number"] == number:
            self._met_checkpoint = True
            if receipt_proof.canonical(self.checkpoint["document"]) != receipt_proof.canonical(document):
                yield f"{name}: it is not the one that the checkpoint was taken of"

    def _leaves(self, name: str, link: Mapping[str, Any]) -> Iterator[str]:
        document, leaves = link["document"], list(link["leaves"])
        if (
            receipt_proof.root(list(map(bytes.fromhex, leaves))).hex() != document["root"]
            or len(leaves) != document["size"]
        ):
            yield f"{name}: its leaves do not lead to its root"
        if link["expired"] and not link["receipts"]:
            return
        yield from (f"{name}: {finding}" for finding in _differences(leaves, link["receipts"]))
        self.receipts += len(link["receipts"])

    def _pass(self, document: Mapping[str, Any], number: int) -> None:
        self._previous, self._number = receipt_proof.seal_hash(document), number
        self.total, self.seals = int(document["total"]), self.seals + 1

    def _ends(self) -> Iterator[str]:
        if self.checkpoint is None or self._met_checkpoint:
            return
        said = self.checkpoint["document"]
        yield (
            f"the tail was cut off: the checkpoint knows seal {said['number']} and {said['total']} receipts, "
            f"the chain ends at seal {self._number} with {self.total}"
        )

    def _signed(self, link: Mapping[str, Any]) -> bool:
        public = self.keys.get(link["signature"].get("key_id", ""))
        return public is not None and receipt_proof.is_signed(link["document"], link["signature"], public)


def _differences(leaves: Sequence[str], receipts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which receipts are not as they were sealed."""
    hashes = [_hash(receipt) for receipt in receipts]
    if hashes == list(leaves):
        return
    known, there = set(leaves), set(hashes)
    seen: set[str] = set()
    for place, (receipt, found) in enumerate(zip(receipts, hashes, strict=True)):
        in_place = place < len(leaves) and leaves[place] == found
        if found in seen:
            yield f"receipt {receipt.get('id')} stands there twice"
        elif found not in known:
            yield f"receipt {receipt.get('id')} in place {place} was altered or added"
        elif not in_place:
            yield f"receipt {receipt.get('id')} was sealed in place {leaves.index(found)} and stands in place {place}"
        seen.add(found)
    for place, leaf in enumerate(leaves):
        if leaf not in there:
            yield f"the receipt of place {place} is missing or altered"


def _hash(receipt: Mapping[str, Any]) -> str:
    try:
        return receipt_proof.leaf_hash(receipt).hex()
    except (ValueError, TypeError, OverflowError):
        return "not a receipt"
