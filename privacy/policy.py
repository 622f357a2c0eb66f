"""A space's rules of masking: what happens to each kind, and whose phone numbers count without their country."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from phonenumbers import SUPPORTED_REGIONS

from privacy.kind import KINDS

DEFAULT_REGIONS = ("US", "GB", "BR", "PT", "ES", "FR", "DE", "IT", "JP", "IN", "MX", "TR", "PL", "NL", "CN", "PH", "AU")


class Operator(StrEnum):
    REPLACE = "replace"  # <EMAIL_ADDRESS>
    MASK = "mask"  # all but the last four characters become *
    HASH = "hash"  # <EMAIL_ADDRESS:…>, keyed: equal values stay equal
    PSEUDONYM = "pseudonym"  # <PERSON_1>, the same within a subject
    KEEP = "keep"


_KEYED = frozenset({Operator.HASH, Operator.PSEUDONYM})


@dataclass(frozen=True, slots=True)
class Policy:
    """A kind that `operators` does not name is replaced. `key` is for `hash` and `pseudonym`: secret, of the space."""

    version: int = 0
    operators: Mapping[str, Operator] = field(default_factory=lambda: MappingProxyType({}))
    regions: tuple[str, ...] = DEFAULT_REGIONS
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        """ValueError names what is not known, or says that the key is missing."""
        unknown = sorted({*self.operators} - KINDS) + sorted({*self.regions} - SUPPORTED_REGIONS)
        if unknown:
            raise ValueError(f"no such kind or region: {', '.join(unknown)}")
        if not self.key and _KEYED & {*self.operators.values()}:
            raise ValueError("hash and pseudonym need a key")

    def operator(self, kind: str) -> Operator:
        return self.operators.get(kind, Operator.REPLACE)


DEFAULT_POLICY = Policy()


def of_regions(regions: tuple[str, ...]) -> Policy:
    """The default rules with other phone regions; none given: the default's own. ValueError names an unknown one."""
    return replace(DEFAULT_POLICY, regions=regions) if regions else DEFAULT_POLICY
