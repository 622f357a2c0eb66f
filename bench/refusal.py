"""Does agent memory refuse what is personal, and take what is not? On data that nobody here wrote, in-process layer alone.

Each text is put where a note has its body. `presidio_recognizer_cases` tells ids and look-alikes of them, one kind each;
`participa_df_pt_br` whole requests of citizens, by hand said to hold personal data or not.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

from bench.report import shared, skip, tell
from intake.refusal import detected
from memory.note import LONGEST_BODY
from privacy.policy import DEFAULT_POLICY

_SETS = ("presidio_recognizer_cases", "participa_df_pt_br")
# What presidio's tests find and is nobody's own: addresses of the web, days, places, banks, companies, made-up patterns.
_NOBODYS = frozenset(
    [
        "url",
        "date",
        "aba_routing",
        "pattern",
        "uk_postcode",
        "de_plz",
        "de_vat_id",
        "de_bsnr",
        "de_handelsregister",
        "se_organisationsnummer",
        "sg_uen",
        "kr_brn",
    ]
)
_BY_MODELS = frozenset(("spacy", "stanza", "transformers", "gliner", "flair"))  # names that nobody registered


def measure(files: Iterable[Path]) -> dict[str, object]:
    """By set: the share of personal texts that is refused, of others that is taken; and which kinds slip through."""
    told: dict[str, object] = {}
    for file in files:
        counts, missed, flagged = Counter[str](), Counter[str](), Counter[str]()
        for text, kind, personal in _cases(file):
            refused = any(detected((part,), DEFAULT_POLICY) for part in _bodies(text))
            counts[f"{'personal' if personal else 'other'}_{'refused' if refused else 'taken'}"] += 1
            if personal and not refused:
                missed[kind] += 1
            if refused and not personal:
                flagged[kind] += 1
        told[file.parent.name] = {
            "refused_of_personal": _share(counts["personal_refused"], counts["personal_taken"]),
            "taken_of_others": _share(counts["other_taken"], counts["other_refused"]),
            **counts,
            "missed": dict(missed.most_common(12)),
            "flagged": dict(flagged.most_common(12)),
        }
    return told


def _cases(file: Path) -> Iterator[tuple[str, str, bool]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if "pii" in case:
                yield case["text"], "request", bool(case["pii"])
            elif case["type"] not in _BY_MODELS:
                yield case["text"], case["type"], _is_personal(case)


def _is_personal(case: Mapping[str, Any]) -> bool:
    if case["type"] in _NOBODYS or not case["expected_len"]:
        return False
    if case["type"] != "ip":
        return True
    return any(_is_public(case["text"][start:end]) for start, end in case["spans"])


def _is_public(address: str) -> bool:
    try:
        return ip_interface(address).is_global
    except ValueError:
        return False


def _bodies(text: str) -> Iterator[str]:
    """A long text as the bodies of several notes, which overlap."""
    step = LONGEST_BODY - 200
    yield from (text[start : start + LONGEST_BODY] for start in range(0, max(1, len(text) - 200), step))


def _share(good: int, bad: int) -> float:
    return round(good / max(1, good + bad), 4)


def main() -> None:
    files = [shared("data", name, "cases.jsonl") for name in _SETS]
    there = [file for file in files if file is not None]
    if len(there) < len(files):
        skip("refusal", "the data beside the checkout are absent")
        return
    tell("refusal", "ids with check digits, e-mail, +country phones: as masking's", **measure(there))


if __name__ == "__main__":
    main()
