"""Handles and subjects as data sets: by what a person is known, and the opaque id that everything else goes by."""

from typing import Any

from models.dataset import Holds, Keys, Row
from models.rows import Rows, Way, instant
from models.subject import SEALED_HANDLE, opaque


def _show_handle(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    return {
        "subject": opaque(row["subject_id"]),
        "kind": row["kind"],
        "handle": None if key is None else key.open(row["sealed"], SEALED_HANDLE),
        "confirmed": row["confirmed"],
        "since": instant(row["created_at"]),
    }


def _show_subject(row: Any, keys: Keys) -> Row:  # noqa: ARG001 - nothing of it is sealed
    return {"subject": opaque(row["id"]), "since": instant(row["created_at"])}


HANDLES = Rows(
    name="handles",
    table="handles",
    columns={"kind": Holds.CODE, "digest": Holds.DIGEST, "sealed": Holds.SEALED},
    ways=(Way("subject_id", "subjects"),),
    show=_show_handle,
    order="kind, digest",
)

SUBJECTS = Rows(
    name="subjects", table="subjects", columns={}, ways=(Way("id", "subjects"),), show=_show_subject, order="id"
)
