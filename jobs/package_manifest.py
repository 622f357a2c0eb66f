"""What a package says about itself: its manifest, its checksums, and a word to whoever opens it."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.package import Part
from jobs.package_words import words
from models import export_package
from models import subject as subjects
from models.registry import NOTHING_PERSONAL

SCHEMA = "afterturn-export/1"

_README = """What is kept about you
======================

This folder holds everything that the service keeps about you. It shows one
moment: what came or went later is not in it.

Start here
----------
Open index.html with a double click. It is a page for your web browser. It
works without the internet and sends nothing to anybody. It shows the first
rows of everything; the files in the folder "data" hold all of them.

What you will find
------------------
{kinds}

What may look odd
-----------------
- Words such as <EMAIL_ADDRESS> stand where something personal was replaced
  before it was stored. The original was never kept, so nobody can give it back.
- Ids are made up by the service. They mean nothing outside of it, and the same
  id is the same thing in all files.
- Times are written as 2026-03-01T09:30:00+00:00: the day, the time, and how far
  that clock is from world time (UTC).

Keep it safe
------------
This folder is not locked. Whoever has it can read it.

For programs
------------
data/NAME.jsonl      one file for each kind of data: one JSON document a line
receipts.jsonl       what was done with the data, and by which key; with its proof
                     where the receipt is sealed
manifest.json        what is in this package, what is not and why, and the SHA-256
                     of every file
manifest-sha256.txt  checksums: `sha256sum -c manifest-sha256.txt` checks every file
"""

_LEFT_OUT = (
    ("the originals of masked values", "they were replaced before anything was stored, and are nowhere"),
    ("keys", "they open what is stored, and are no data about a person"),
    ("program logs, queues and caches", "they hold ids and numbers, never a text"),
    ("backups", "they hold what is here, as it was, under the same person's key"),
)


@dataclass(frozen=True, slots=True)
class Contents:
    """One data set as it went in. `expired`: rows past their term, which are served to nobody."""

    name: str
    part: Part
    rows: int
    expired: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Which package this is, of whom, from where, as of when."""

    package: UUID
    deployment: str
    software: str
    subject: UUID
    subjects: Sequence[UUID]
    as_of: datetime
    registry: str
    unconfirmed: int

    def facts(self) -> dict[str, object]:
        """As the manifest and the page tell them."""
        return {
            "package": export_package.opaque(self.package),
            "schema": SCHEMA,
            "deployment": self.deployment,
            "software": self.software,
            "subject": subjects.opaque(self.subject),
            "subjects": [subjects.opaque(subject) for subject in self.subjects],
            "as_of": self.as_of.isoformat(),
            "registry": self.registry,
            "unconfirmed_handles": self.unconfirmed,
        }


def readme(data_sets: Sequence[str]) -> str:
    """README.txt, for people. `data_sets` by name: each is in the list, whether or not anything is kept in it."""
    return _README.format(kinds="\n".join(_kind(one) for one in sorted(data_sets, key=lambda one: words(one).title)))


def manifest(origin: Origin, contents: Sequence[Contents], parts: Sequence[Part]) -> str:
    """manifest.json: every data set of the registry is on it, the empty ones too."""
    document: dict[str, Any] = {
        **origin.facts(),
        "data_sets": [_data_set(one) for one in contents],
        "files": [{"file": part.name, "bytes": part.size, "sha256": part.sha256} for part in parts],
        "not_included": left_out(contents),
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def checksums(parts: Sequence[Part]) -> str:
    """manifest-sha256.txt, as `sha256sum -c` takes it."""
    return "".join(f"{part.sha256}  {part.name}\n" for part in parts)


def left_out(contents: Sequence[Contents]) -> list[dict[str, str]]:
    """What is not in the package, and why."""
    expired = [
        (f"{one.expired} rows of {one.name}", "past their term: they are served to nobody, and are being deleted")
        for one in contents
        if one.expired
    ]
    tables = [(f"the table {table}", why) for table, why in sorted(_tables().items())]
    return [{"what": what, "why": why} for what, why in (*expired, *_LEFT_OUT, *tables)]


def _tables() -> Mapping[str, str]:
    return {table: why for table, why in NOTHING_PERSONAL.items() if table != "receipts"}


def _kind(data_set: str) -> str:
    title, what = words(data_set)
    told = textwrap.fill(f"{title}. {what}".rstrip(), 76, initial_indent="- ", subsequent_indent="  ")
    return f"{told}\n  (data/{data_set}.jsonl)"


def _data_set(one: Contents) -> dict[str, object]:
    return {
        "name": one.name,
        "rows": one.rows,
        "expired": one.expired,
        "file": one.part.name,
        "bytes": one.part.size,
        "sha256": one.part.sha256,
    }
