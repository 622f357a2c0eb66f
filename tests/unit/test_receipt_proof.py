"""The chain of receipts holds, and whatever is done to it is named."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from privacy import handover, receipt_proof
from privacy.handover import Trust
from privacy.receipt_audit import Audit

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
TRUST = Trust({"sig_ours": KEY.public_key().public_bytes_raw()}, {})


RING = {f"sig_{name}": Ed25519PrivateKey.generate() for name in "abc"}


def public(name: str) -> bytes:
    return RING[name].public_key().public_bytes_raw()


def took_over(old: str, new: str) -> dict[str, Any]:
    said = handover.document((old, public(old)), (new, public(new)), "2026-01-01T00:00:00.000000Z")
    signatures = [receipt_proof.sign(said, RING[name], name) for name in (old, new)]
    return {"document": said, "by_old": signatures[0], "by_new": signatures[1]}


def receipt(number: int) -> dict[str, Any]:
    return {
        "version": 1,
        "id": f"rct_{number}",
        "space": "1",
        "at": f"t{number}",
        "actor": "key_a",
        "action": "a.b",
        "ids": {},
        "counts": {},
    }


def chain(
    sizes: list[int], key: Ed25519PrivateKey = KEY, space: int = 1, keys: list[str] | None = None
) -> list[dict[str, Any]]:
    """Seals of so many receipts each. `keys`: the name of each one's key, where it is not `sig_ours`."""
    links, previous, total = [], receipt_proof.BEGINNING, 0
    for number, size in enumerate(sizes, 1):
        name = keys[number - 1] if keys else "sig_ours"
        receipts = [receipt(total + place) for place in range(size)]
        leaves = [receipt_proof.leaf_hash(one) for one in receipts]
        total += size
        document = receipt_proof.seal_document(space, number, previous, leaves, total, "2026-01-01T00:00:00.000000Z")
        previous = receipt_proof.seal_hash(document)
        signature = receipt_proof.sign(document, RING.get(name, key), name)
        links.append(
            {
                "document": document,
                "signature": signature,
                "leaves": [leaf.hex() for leaf in leaves],
                "expired": None,
                "receipts": receipts,
            }
        )
    return links


def findings(links: list[dict[str, Any]], checkpoint: dict[str, Any] | None = None, trust: Trust = TRUST) -> list[str]:
    return list(Audit(trust, checkpoint).walk(json.loads(json.dumps(links))))


def test_an_untouched_chain_holds() -> None:
    links = chain([3, 1, 5])
    audit = Audit(TRUST, links[-1])
    assert list(audit.walk(links)) == []
    assert (audit.seals, audit.receipts, audit.total) == (3, 9, 9)


def edited(links: list[dict[str, Any]]) -> None:
    links[1]["receipts"][1]["counts"] = {"turns": 1}


def swapped(links: list[dict[str, Any]]) -> None:
    links[1]["receipts"].reverse()


def middle_gone(links: list[dict[str, Any]]) -> None:
    del links[1]["receipts"][1]


def seal_gone(links: list[dict[str, Any]]) -> None:
    del links[1]


def tail_cut(links: list[dict[str, Any]]) -> None:
    del links[2]


def all_gone(links: list[dict[str, Any]]) -> None:
    links.clear()


def one_added(links: list[dict[str, Any]]) -> None:
    links[1]["receipts"].append(receipt(99))


def doubled(links: list[dict[str, Any]]) -> None:
    links[1]["receipts"].append(links[1]["receipts"][0])


def reordered(links: list[dict[str, Any]]) -> None:
    links[0], links[1] = links[1], links[0]


def rechained(links: list[dict[str, Any]]) -> None:
    links[:] = chain([3, 2, 5], OTHER)


def leaves_altered_too(links: list[dict[str, Any]]) -> None:
    links[1]["receipts"][1]["actor"] = "key_b"
    links[1]["leaves"][1] = receipt_proof.leaf_hash(links[1]["receipts"][1]).hex()


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (edited, "seal 2: receipt rct_4 in place 1 was altered or added"),
        (swapped, "seal 2: receipt rct_5 was sealed in place 2 and stands in place 0"),
        (middle_gone, "seal 2: the receipt of place 1 is missing or altered"),
        (seal_gone, "seal 3: seal 2 was expected here"),
        (tail_cut, "the tail was cut off: the checkpoint knows seal 3 and 8 receipts, the chain ends at seal 2 with 6"),
        (all_gone, "the tail was cut off: the checkpoint knows seal 3 and 8 receipts, the chain ends at seal 0 with 0"),
        (one_added, "seal 2: receipt rct_99 in place 3 was altered or added"),
        (doubled, "seal 2: receipt rct_3 stands there twice"),
        (reordered, "seal 2: seal 1 was expected here"),
        (rechained, "seal 1: its signature was not made by a known key"),
        (leaves_altered_too, "seal 2: its leaves do not lead to its root"),
    ],
)
def test_what_was_done_to_a_chain_is_named(attack: Callable[[list[dict[str, Any]]], None], named: str) -> None:
    links = chain([3, 3, 2])
    checkpoint = copy.deepcopy(links[-1])
    attack(links)
    assert named in findings(links, checkpoint)


def expired(through: int, space: int = 1, key: Ed25519PrivateKey = KEY, kind: str | None = None) -> dict[str, Any]:
    word = receipt_proof.expiry_document(space, through, "2027-01-01T00:00:00.000000Z")
    word |= {"kind": kind or word["kind"]}
    return {"document": word, "signature": receipt_proof.sign(word, key, "sig_ours")}


def test_what_stands_behind_a_receipt_that_is_gone_is_not_named_with_it() -> None:
    links = chain([9])
    del links[0]["receipts"][2]
    assert findings(links) == ["seal 1: the receipt of place 2 is missing or altered"]


def test_a_seal_whose_receipts_expired_still_links() -> None:
    links = chain([3, 3, 2])
    for link in links[:2]:
        link |= {"expired": expired(2), "receipts": []}
    assert findings(links, links[-1]) == []


@pytest.mark.parametrize(
    "word",
    [expired(1), expired(2, space=2), expired(2, key=OTHER), expired(2, kind="afterturn.seal"), {"document": {}}, True],
    ids=["of an earlier seal", "of another space", "by another key", "of another kind", "of nothing", "unsigned"],
)
def test_receipts_are_not_expired_because_somebody_says_so(word: Any) -> None:
    links = chain([3, 3, 2])
    links[1] |= {"expired": word, "receipts": []}
    assert any(one.startswith("seal 2") for one in findings(links))


def test_another_spaces_chain_is_no_substitute() -> None:
    assert "seal 1: it belongs to another space" in findings(chain([3, 3], space=2), chain([3, 3])[-1])


@pytest.mark.parametrize("known", ["sig_a", "sig_b", "sig_c"])
def test_who_knows_any_of_the_keys_can_check_the_whole_chain(known: str) -> None:
    links = chain([1, 1, 1], keys=["sig_a", "sig_b", "sig_c"])
    trust = handover.trust({known: public(known)}, [took_over("sig_b", "sig_c"), took_over("sig_a", "sig_b")])
    assert findings(links, trust=trust) == []
    skipped = chain([1, 1], keys=["sig_a", "sig_c"])  # nothing was sealed while the second key was there
    assert findings(skipped, trust=trust) == []


def test_a_key_that_was_retired_seals_nothing_any_more() -> None:
    trust = handover.trust({"sig_a": public("sig_a")}, [took_over("sig_a", "sig_b")])
    links = chain([1, 1, 1], keys=["sig_a", "sig_b", "sig_a"])
    assert findings(links, trust=trust) == ["seal 3: its key did not take over from that of the seal before it"]


@pytest.mark.parametrize("side", ["by_old", "by_new"])
def test_a_handover_that_one_of_the_keys_did_not_sign_ties_nothing(side: str) -> None:
    forged = took_over("sig_a", "sig_b")
    forged[side]["value"] = receipt_proof.sign(forged["document"], RING["sig_c"], "sig_c")["value"]
    trust = handover.trust({"sig_a": public("sig_a")}, [forged, {}, {"document": 3}])
    assert trust.keys == {"sig_a": public("sig_a")}
    assert "seal 2: its signature was not made by a known key" in findings(
        chain([1, 1], keys=["sig_a", "sig_b"]), trust=trust
    )


@pytest.mark.parametrize(
    "link", [{}, {"document": 3}, {"document": {"number": "x"}}, [], "", {"document": {"number": 1}}]
)
def test_what_is_no_seal_is_a_finding_and_no_traceback(link: Any) -> None:
    assert findings([link])


def test_a_chain_that_was_written_anew_by_the_owner_of_the_key_is_not_the_checkpoints() -> None:
    assert "seal 2: it is not the one that the checkpoint was taken of" in findings(chain([3, 4]), chain([3, 3])[-1])


@given(st.integers(1, 70), st.data())
def test_every_leaf_has_a_proof_and_no_other_leaf_has_it(size: int, data: st.DataObject) -> None:
    leaves = [receipt_proof.leaf_hash(receipt(number)) for number in range(size)]
    index = data.draw(st.integers(0, size - 1))
    tree, root = receipt_proof.inclusion(leaves, index), receipt_proof.root(leaves)
    assert receipt_proof.includes(tree, leaves[index], root)
    assert not receipt_proof.includes(tree, receipt_proof.leaf_hash(receipt(size)), root)
    assert size == 1 or not receipt_proof.includes(tree, leaves[index - 1], root)


def test_roots_are_those_of_rfc_9162() -> None:
    # RFC 6962/9162's published test tree: leaves "", 00, 10, 2021, 3031, 40414243
    import hashlib

    entries = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [hashlib.sha256(b"\x00" + bytes.fromhex(entry)).digest() for entry in entries]
    assert receipt_proof.root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert receipt_proof.root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_a_moment_always_has_six_digits() -> None:
    assert receipt_proof.moment(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"
