"""What a bench says: one JSON line on standard output; everything else goes to standard error."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared"


def tell(bench: str, goal: str, **figures: object) -> None:
    """The bench's line: its name, its figures, and what they are meant to be."""
    print(json.dumps({"bench": bench, **figures, "goal": goal}, ensure_ascii=False), flush=True)


def skip(bench: str, why: str) -> None:
    """The line of a bench that cannot run here, which is no failure."""
    print(json.dumps({"bench": bench, "skipped": why}), flush=True)


def remark(line: str) -> None:
    """How far the bench has come."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def shared(*parts: str) -> Path | None:
    """A file of the data that lies beside the checkout, or in AFTERTURN_SHARED; None where it is absent."""
    found = Path(os.environ.get("AFTERTURN_SHARED") or _BESIDE).joinpath(*parts)
    return found if found.exists() else None


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` of them do not exceed; of none: 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
