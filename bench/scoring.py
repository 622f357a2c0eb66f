"""What a log is worth: the scorer that lies beside the checkout, and the goals of its figures."""

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.report import shared

Entry = Mapping[str, Any]
"""One line of a log, as the scorer takes it: session, date, text, and src, the ids of the messages behind it."""

_FIGURES = {
    "kept": "kept",
    "s_session": "surv_ses",
    "s_bm10": "surv_bm10",
    "dates_right": "date_right",
    "dates_wrong": "date_wrong",
    "near_duplicates": "dup",
}


def score(file: Path, log: Mapping[str, Sequence[Entry]]) -> dict[str, float]:
    """The scorer's figures, in per cent, for the samples of a LoCoMo file that the log has; none without a scorer."""
    scorer = tool("locomo_eval")
    if scorer is None:
        return {}
    data = [sample for sample in scorer.load(str(file)) if sample["id"] in log]
    found = scorer.score(data, log)
    return {name: round(100 * found[key], 2) for name, key in _FIGURES.items()} | {"entries": found["entries"]}


def tool(name: str) -> ModuleType | None:
    """A script of the tools beside the checkout, as a module; None where it is absent."""
    path = shared("tools", f"{name}.py")
    if path is None:
        return None
    sys.path.append(str(path.parent))  # the tools import one another
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(path: Path | None, log: Mapping[str, Sequence[Entry]]) -> None:
    """Writes the log for the scorer, where a path was given."""
    if path is not None:
        path.write_text(json.dumps(log, ensure_ascii=False), encoding="utf-8")
