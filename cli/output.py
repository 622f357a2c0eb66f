"""Standard output carries the answer alone; whatever else there is to say goes to standard error."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any


def answer(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """The answer: one JSON document, or lines for a person."""
    if as_json:
        sys.stdout.write(json.dumps(document, ensure_ascii=False, default=_plain) + "\n")
    else:
        sys.stdout.writelines(f"{shown(line)}\n" for line in lines)
    sys.stdout.flush()


def remark(line: str) -> None:
    """One line beside the answer."""
    sys.stderr.write(f"{shown(line)}\n")
    sys.stderr.flush()


def table(rows: Iterable[Sequence[object]], titles: Sequence[str]) -> list[str]:
    """Rows under their titles, in aligned columns."""
    cells = [list(titles), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def shown(text: str) -> str:
    """Text that is safe to show on a terminal: what would move its cursor or turn its text round is spelled out."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
