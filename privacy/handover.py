"""How one signing key takes over from another: a statement signed by both, so that whoever knows one knows the other. Pure."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from privacy import receipt_proof

_KIND = "afterturn.key-handover"


@dataclass(frozen=True, slots=True)
class Trust:
    """Which keys may have signed, 32 bytes by id, and which took over from which (`after`: the next key by the one before)."""

    keys: Mapping[str, bytes]
    after: Mapping[str, str]

    def leads(self, old: str, new: str) -> bool:
        """Whether the new key took over from the old one, at once or by those in between."""
        seen = {old}
        while old != new:
            old = self.after.get(old, "")
            if not old or old in seen:
                return False
            seen.add(old)
        return True


def document(old: tuple[str, bytes], new: tuple[str, bytes], at: str) -> dict[str, Any]:
    """What both keys sign. Each key is its id and its 32 public bytes."""
    return {
        "kind": _KIND,
        "version": 1,
        "from": {"key_id": old[0], "key": b64encode(old[1]).decode()},
        "to": {"key_id": new[0], "key": b64encode(new[1]).decode()},
        "at": at,
    }


def trust(known: Mapping[str, bytes], handovers: Iterable[Mapping[str, Any]]) -> Trust:
    """The keys that are known, and all that a handover ties to one of them; what both did not sign ties nothing."""
    waiting = [pair for handover in handovers if (pair := _pair(handover)) is not None]
    keys, after = dict(known), {}
    while tied := [(old, new) for old, new in waiting if _is(keys, old) or _is(keys, new)]:
        for old, new in tied:
            keys.setdefault(*old)
            keys.setdefault(*new)
            after[old[0]] = new[0]
        waiting = [pair for pair in waiting if pair not in tied]
    return Trust(keys, after)


def _is(keys: Mapping[str, bytes], key: tuple[str, bytes]) -> bool:
    return keys.get(key[0]) == key[1]


def _pair(handover: Mapping[str, Any]) -> tuple[tuple[str, bytes], tuple[str, bytes]] | None:
    """The keys that a handover names, where both signed it."""
    try:
        said = handover["document"]
        old, new = ((said[side]["key_id"], b64decode(said[side]["key"], validate=True)) for side in ("from", "to"))
        signed = all(
            signature["key_id"] == key_id and receipt_proof.is_signed(said, signature, public)
            for signature, (key_id, public) in ((handover["by_old"], old), (handover["by_new"], new))
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return (old, new) if signed and said["kind"] == _KIND else None
