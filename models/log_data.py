"""Observation logs, and the generations that each went through, as data sets: numbers, and no text."""

from typing import Any

from models.dataset import Holds, Keys, Row
from models.hold import UNHELD_LOG
from models.rows import Rows, Way, instant


def _show_log(row: Any, keys: Keys) -> Row:  # noqa: ARG001 - nothing of it is sealed
    return {
        "id": row["id"],
        "agent": row["agent"],
        "context": row["context"],
        "turns": row["last_seq"],
        "observed_through": row["observed_through"],
        "pending_turns": row["pending_turns"],
        "generation": row["generation"],
        "erased_turns": row["erased_turns"],
        "since": instant(row["created_at"]),
    }


def _show_generation(row: Any, keys: Keys) -> Row:  # noqa: ARG001 - nothing of it is sealed
    return {
        "log_id": row["log_id"],
        "number": row["number"],
        "made_by": row["made_by"],
        "parent": row["parent"],
        "made_at": instant(row["created_at"]),
    }


LOGS = Rows(
    name="logs",
    table="logs",
    columns={"agent": Holds.CODE, "context": Holds.CODE, "last_error": Holds.CODE, "failed_reflection": Holds.CODE},
    ways=(Way("subject_id", "subjects"), Way("id", "logs")),
    show=_show_log,
    order="id",
)

GENERATIONS = Rows(
    name="generations",
    table="generations",
    columns={"made_by": Holds.CODE},
    ways=(Way("log_id", "logs", "number"),),
    show=_show_generation,
    order="log_id, number",
    age="created_at",
    spared=f"""AND {UNHELD_LOG} AND NOT EXISTS (
        SELECT FROM logs l WHERE l.id = t.log_id AND l.generation = t.number)""",
)
