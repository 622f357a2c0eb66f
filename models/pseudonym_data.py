"""Pseudonyms as a data set: which placeholders stand for a person's values. The values themselves are kept nowhere."""

import json
from typing import Any

from models.dataset import Holds, Keys, Row
from models.pseudonym import SEALED_PSEUDONYMS
from models.rows import Rows, Way
from models.subject import opaque


def _show(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    given = None if key is None else sorted(json.loads(key.open(row["sealed"], SEALED_PSEUDONYMS)).values())
    return {"subject": opaque(row["subject_id"]), "placeholders": given}


PSEUDONYMS = Rows(
    name="pseudonyms",
    table="pseudonyms",
    columns={"sealed": Holds.SEALED},
    ways=(Way("subject_id", "subjects"),),
    show=_show,
    order="subject_id",
)
