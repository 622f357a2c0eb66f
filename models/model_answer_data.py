"""A model's kept answers as a data set: they wait for the work that asked to end, and are gone with it."""

from typing import Any

from models.dataset import Holds, Keys, Row
from models.model_answer import SEALED_ANSWER
from models.rows import Rows, Way, instant


def _show(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    answer = None if key is None else key.open(row["sealed"], SEALED_ANSWER)
    return {"work_id": row["work_id"], "answer": answer, "had_at": instant(row["created_at"])}


MODEL_ANSWERS = Rows(
    name="model_answers",
    table="model_answers",
    columns={"step": Holds.DIGEST, "sealed": Holds.SEALED},
    ways=(Way("subject_id", "subjects"),),
    show=_show,
    order="work_id, step",
)
