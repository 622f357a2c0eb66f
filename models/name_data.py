"""Names as a data set: what a person is called besides their handles."""

from typing import Any

from models.dataset import Holds, Keys, Row
from models.name import SEALED_NAME
from models.rows import Rows, Way, instant
from models.subject import opaque


def _show(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    return {
        "subject": opaque(row["subject_id"]),
        "name": None if key is None else key.open(row["sealed"], SEALED_NAME),
        "since": instant(row["created_at"]),
    }


NAMES = Rows(
    name="names",
    table="names",
    columns={"digest": Holds.DIGEST, "head": Holds.DIGEST, "sealed": Holds.SEALED},
    ways=(Way("subject_id", "subjects"),),
    show=_show,
    order="subject_id, digest",
)
