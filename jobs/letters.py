"""The letters: every kind of work, as its producer and its job both know it. A kind is never renamed."""

from enum import StrEnum

from models.work import Letter


class QueueClass(StrEnum):
    """Whom a kind of work competes with for a worker's slots."""

    INTERACTIVE = "interactive"  # a person waits: export, erasure, distillation
    MEMORY = "memory"  # calls the model server
    HOUSEKEEPING = "housekeeping"  # cheap and many: retention, receipts, webhooks


OBSERVE = "observe"
REFLECT = "reflect"


def observe_letter(space: int, log_id: int) -> Letter:
    """Condense a log's pending turns. One at a time per log, whichever of the two kinds."""
    return _of_log(OBSERVE, space, log_id)


def reflect_letter(space: int, log_id: int) -> Letter:
    """Rewrite a whole log. One at a time per log, whichever of the two kinds."""
    return _of_log(REFLECT, space, log_id)


def _of_log(kind: str, space: int, log_id: int) -> Letter:
    log = f"log:{log_id}"
    return Letter(kind, QueueClass.MEMORY, space, scope=log, dedup=log, payload={"log_id": log_id})
