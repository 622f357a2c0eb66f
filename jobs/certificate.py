"""The certificate of an erasure: what was erased, how it was checked, and what it does not say. Ids, never a handle."""

from collections.abc import Mapping
from typing import Any

from models import registry, subject
from models.erasing import SET_ASIDE, Erasing
from models.residue import KEPT

_RECOGNISES = (
    "An HMAC of each handle under the deployment's suppression key, and the instant of the erasure, in the ledger beside "
    "the keys: by it input from before the erasure is refused. It cannot be turned back into the handle, and leads to "
    "nothing that was erased. HMACs of idempotency keys are kept for their 24 hours."
)

_NOT_COVERED = (
    (
        "Backups, replicas and write-ahead logs of the data database may hold the bytes of erased rows until they are "
        "recycled, and so may its files until they are vacuumed: every text there is under keys that are destroyed."
    ),
    (
        "Backups of the key store from before the erasure hold those keys, wrapped by the master key. Keep them for a "
        "shorter time than you promise erasure in; a restored key store is brought up to date by its ledger."
    ),
    (
        "Agent memory in which the person's names or handles were found (`set_aside`): no agent is served it, and it stays "
        "until a reviewer deletes, words anew or releases it. What says something about the person without naming them is "
        "not found there."
    ),
    "Whatever was handed out before: answers to reads, downloaded packages, prompts that a model server keeps.",
    "The person's data in systems that this deployment does not run.",
)


def document(erasing: Erasing, proof: Mapping[str, Any]) -> dict[str, Any]:
    """What is signed."""
    target = erasing.target
    return {
        "kind": "afterturn.erasure-certificate",
        "version": 1,
        "erasure": str(erasing.id),
        "erased": {
            "kind": erasing.kind,
            "subjects": [subject.opaque(one) for one in target.subjects],
            "logs": len(target.logs),
            "conversations": len(target.conversations),
            "agent": target.agent,
        },
        "reason_code": erasing.reason_code,
        "accepted_at": erasing.accepted_at.isoformat(),
        "unconfirmed_links_not_followed": erasing.unconfirmed,
        "rows": {one.name: erasing.counts.get(one.name, 0) for one in registry.DATA_SETS},
        "set_aside": {kind: erasing.counts.get(f"{kind}{SET_ASIDE}", 0) for kind in ("notes", "proposals")},
        "keys_destroyed": len(target.subjects),
        "scan": erasing.progress["scan"],
        "registry": {"version": registry.version(), "nothing_personal": dict(registry.NOTHING_PERSONAL)},
        "kept": dict(KEPT),
        "recognises_a_returning_handle": _RECOGNISES,
        "not_covered": list(_NOT_COVERED),
        "receipt": {"id": proof["receipt"]["id"], "proof": dict(proof)},
    }
