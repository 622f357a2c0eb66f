"""A space's rules of masking: what happens to each kind, and whose phone numbers count without their country."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from phonenumbers import SUPPORTED_REGIONS

from privacy.kind import KINDS, WHOLE

DEFAULT_REGIONS = ("US", "GB", "BR", "PT", "ES", "FR", "DE", "IT", "JP", "IN", "MX", "TR", "PL", "NL", "CN", "PH", "AU")


class Operator(StrEnum):
    REPLACE = "replace"  # <EMAIL_ADDRESS>
    MASK = "mask"  # all but the last four characters become *
    HASH = "hash"  # <EMAIL_ADDRESS:…>, keyed: equal values stay equal
    PSEUDONYM = "pseudonym"  # <PERSON_1>, the same within a subject
    KEEP = "keep"


class PolicyError(ValueError):
    """A document that is no policy; `path` says where ("operators.SHOE_SIZE", "" for the whole)."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


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

    @property
    def gives_pseudonyms(self) -> bool:
        """Whether some kind's placeholders must stay the same from text to text."""
        return Operator.PSEUDONYM in self.operators.values()

    @classmethod
    def from_document(cls, document: object, *, key: bytes = b"") -> "Policy":
        """The rules in `{"version"?: int, "operators"?: {kind: operator}, "regions"?: [ISO code]}`.

        What is left out is the default's. Raises `PolicyError`, which names the path of the first thing wrong.
        """
        members = _mapping(document, "")
        for name in members:
            _require(name in _MEMBERS, str(name), f"no such member; there are {', '.join(_MEMBERS)}")
        operators = _operators(members.get("operators", {}))
        keyed = next((kind for kind, operator in operators.items() if operator in _KEYED), None)
        _require(bool(key) or keyed is None, f"operators.{keyed}", "hash and pseudonym need a key, and there is none")
        return cls(
            _version(members.get("version", 0)),
            MappingProxyType(operators),
            _regions(members.get("regions", [*DEFAULT_REGIONS])),
            key,
        )

    def to_document(self) -> dict[str, object]:
        """What `from_document` reads, without the key; equal rules are equal documents."""
        operators = {kind: self.operators[kind].value for kind in sorted(self.operators)}
        return {"version": self.version, "operators": operators, "regions": [*self.regions]}


_NO_SUCH_KIND = f"no such kind of personal data; there are {', '.join(sorted(KINDS - {WHOLE}))}"
_MEMBERS = ("version", "operators", "regions")


def _operators(found: object) -> dict[str, Operator]:
    operators: dict[str, Operator] = {}
    for kind, name in _mapping(found, "operators").items():
        path = f"operators.{kind}"
        _require(kind in KINDS and kind != WHOLE, path, _NO_SUCH_KIND)
        _require(name in [*Operator], path, f"no such operator; there are {', '.join(Operator)}")
        operators[str(kind)] = Operator(str(name))
    return operators


def _regions(found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise PolicyError("regions", "expected a list")
    for index, region in enumerate(found):
        known = isinstance(region, str) and region in SUPPORTED_REGIONS
        _require(known, f"regions[{index}]", "no such region; expected two letters of ISO 3166, as in US")
        _require(region not in found[:index], f"regions[{index}]", "this region is named twice")
    return tuple(found)


def _version(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise PolicyError("version", "expected a whole number, 0 or more")
    return found


def _mapping(found: object, path: str) -> Mapping[object, object]:
    if not isinstance(found, Mapping):
        raise PolicyError(path, "expected an object")
    return found


def _require(holds: bool, path: str, why: str) -> None:  # noqa: FBT001  # an assertion reads so
    if not holds:
        raise PolicyError(path, why)


DEFAULT_POLICY = Policy()


def of_regions(regions: tuple[str, ...]) -> Policy:
    """The default rules with other phone regions; none given: the default's own. ValueError names an unknown one."""
    return replace(DEFAULT_POLICY, regions=regions) if regions else DEFAULT_POLICY
