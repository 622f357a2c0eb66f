"""Checking a chain of receipts, with nothing but the chain, the public keys and a checkpoint kept elsewhere. Pure.

Each link is as `models.seal.chain` gives it: `document`, `signature`, `leaves` (hex), `expired` (the signed word that
its receipts expired, or None), `receipts`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privacy import receipt_proof
from privacy.handover import Trust

_UNREADABLE = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)  # of a document that anybody may have written


@dataclass(slots=True)
class Audit:
    """Walks the chain in order. What it finds names the seal and the receipt; nothing found means that all holds.

    `trust` has the public keys that may have signed. `receipts` and `seals` count what was seen, `total` what was sealed.
    """

    trust: Trust
    checkpoint: Mapping[str, Any] | None = None
    receipts: int = 0
    seals: int = 0
    total: int = 0
    _previous: bytes = receipt_proof.BEGINNING
    _number: int = 0
    _space: str | None = None
    _key: str | None = None
    _met_checkpoint: bool = field(default=False)

    def seen(self) -> dict[str, int]:
        """How many seals, and the receipts under them, expired ones included."""
        return {"seals": self.seals, "receipts": self.total}

    def walk(self, chain: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Findings, one sentence each, as they come up."""
        yield from self.begin()
        for link in chain:
            yield from self.follow(link)
        yield from self.end()

    def begin(self) -> Iterator[str]:
        """Before the first link."""
        if self.checkpoint is None:
            return
        if not self._signed(self.checkpoint, receipt_proof.SEAL):
            yield "checkpoint: its signature was not made by a known key"
        self._space = str(self.checkpoint["document"].get("space"))

    def follow(self, link: Mapping[str, Any]) -> Iterator[str]:
        """The next link."""
        try:
            yield from self._link(link)
        except _UNREADABLE as error:
            yield f"seal {self._number + 1}: it does not read as a seal ({type(error).__name__})"

    def end(self) -> Iterator[str]:
        """After the last link."""
        if self.checkpoint is None or self._met_checkpoint:
            return
        said = self.checkpoint["document"]
        yield (
            f"the tail was cut off: the checkpoint knows seal {said.get('number')} and {said.get('total')} receipts, "
            f"the chain ends at seal {self._number} with {self.total}"
        )

    def _link(self, link: Mapping[str, Any]) -> Iterator[str]:
        document, number = link["document"], int(link["document"]["number"])
        name = f"seal {number}"
        if number != self._number + 1:
            yield f"{name}: seal {self._number + 1} was expected here"
        if document["previous"] != self._previous.hex():
            yield f"{name}: it does not follow from the seal before it"
        yield from (f"{name}: {finding}" for finding in self._signature(link))
        if document["total"] != self.total + document["size"]:
            yield f"{name}: it counts {document['total']} receipts where there are {self.total + document['size']}"
        yield from (f"{name}: {finding}" for finding in self._leaves(link))
        self._pass(document, number)
        yield from self._checkpoint(name, document)

    def _signature(self, link: Mapping[str, Any]) -> Iterator[str]:
        space, key = str(link["document"]["space"]), link["signature"].get("key_id")
        if not self._signed(link, receipt_proof.SEAL):
            yield "its signature was not made by a known key"
        else:
            if self._key is not None and not self.trust.leads(self._key, key):
                yield "its key did not take over from that of the seal before it"
            self._key = key
        if self._space not in (None, space):
            yield "it belongs to another space"
        self._space = self._space or space

    def _leaves(self, link: Mapping[str, Any]) -> Iterator[str]:
        document, leaves = link["document"], list(link["leaves"])
        root = receipt_proof.root(list(map(bytes.fromhex, leaves))).hex()
        if root != document["root"] or len(leaves) != document["size"]:
            yield "its leaves do not lead to its root"
        if not link["receipts"] and link["expired"] is not None:
            if self._expired(link["expired"], document):
                return
            yield "its receipts are gone, and nothing that was signed says that they expired"
        yield from _differences(leaves, link["receipts"])
        self.receipts += len(link["receipts"])

    def _expired(self, word: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
        said = word["document"]
        rightly = said["space"] == document["space"] and int(said["through"]) >= int(document["number"])
        return rightly and self._signed(word, receipt_proof.EXPIRY)

    def _pass(self, document: Mapping[str, Any], number: int) -> None:
        self._previous, self._number = receipt_proof.seal_hash(document), number
        self.total, self.seals = int(document["total"]), self.seals + 1

    def _checkpoint(self, name: str, document: Mapping[str, Any]) -> Iterator[str]:
        if self.checkpoint is None or self.checkpoint["document"]["number"] != self._number:
            return
        self._met_checkpoint = True
        if receipt_proof.canonical(self.checkpoint["document"]) != receipt_proof.canonical(document):
            yield f"{name}: it is not the one that the checkpoint was taken of"

    def _signed(self, link: Mapping[str, Any], kind: str) -> bool:
        public = self.trust.keys.get(link["signature"].get("key_id", ""))
        return (
            public is not None
            and link["document"].get("kind") == kind
            and receipt_proof.is_signed(link["document"], link["signature"], public)
        )


def _differences(leaves: Sequence[str], receipts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which receipts are not as they were sealed."""
    hashes = [_hash(receipt) for receipt in receipts]
    if hashes == list(leaves):
        return
    places, there, seen = {leaf: place for place, leaf in enumerate(leaves)}, set(hashes), set[str]()
    # Where one is missing the rest move up: only those are named that stand in another order than they were sealed in.
    in_order = iter(sorted(places[one] for one in there if one in places))
    for place, (receipt, found) in enumerate(zip(receipts, hashes, strict=True)):
        if found in seen:
            yield f"receipt {receipt.get('id')} stands there twice"
        elif found not in places:
            yield f"receipt {receipt.get('id')} in place {place} was altered or added"
        elif places[found] != next(in_order):
            yield f"receipt {receipt.get('id')} was sealed in place {places[found]} and stands in place {place}"
        seen.add(found)
    for leaf, place in places.items():
        if leaf not in there:
            yield f"the receipt of place {place} is missing or altered"


def _hash(receipt: Mapping[str, Any]) -> str:
    try:
        return receipt_proof.leaf_hash(receipt).hex()
    except (ValueError, TypeError, OverflowError):
        return "not a receipt"
