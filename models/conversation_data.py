"""Conversations as a data set: the threads a person had, and the ids that the chat server gave them."""

from typing import Any

from models.conversation import SEALED_ID
from models.dataset import Holds, Keys, Row
from models.rows import Rows, Way, instant


def _show(row: Any, keys: Keys) -> Row:
    key = keys.get(row["subject_id"])
    named = None if key is None else key.open(row["sealed_id"], SEALED_ID)
    return {"id": row["id"], "conversation_id": named, "agent": row["agent"], "began_at": instant(row["created_at"])}


CONVERSATIONS = Rows(
    name="conversations",
    table="conversations",
    columns={"digest": Holds.DIGEST, "known_as": Holds.DIGEST, "sealed_id": Holds.SEALED, "agent": Holds.CODE},
    ways=(Way("subject_id", "subjects"), Way("id", "conversations")),
    show=_show,
    order="id",
)
