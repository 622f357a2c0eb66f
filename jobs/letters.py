"""The letters: every kind of work, as its producer and its job both know it. A kind is never renamed."""

from enum import StrEnum
from uuid import UUID

from models.work import Letter


class QueueClass(StrEnum):
    """Whom a kind of work competes with for a worker's slots."""

    INTERACTIVE = "interactive"  # a person waits: export, erasure, distillation
    MEMORY = "memory"  # calls the model server
    HOUSEKEEPING = "housekeeping"  # cheap and many: retention, receipts, webhooks


OBSERVE = "observe"
REFLECT = "reflect"
SEAL = "seal"
REMASK = "remask"
EXPIRE = "expire"
ERASE = "erase_subject"
EXPORT = "export_subject"
EXPIRE_EXPORT = "expire_export"
DELIVER = "deliver"
DISTIL = "distil"


def observe_letter(space: int, log_id: int) -> Letter:
    """Condense a log's pending turns. One at a time per log, whichever of the two kinds."""
    return _of_log(OBSERVE, space, log_id)


def reflect_letter(space: int, log_id: int) -> Letter:
    """Rewrite a whole log. One at a time per log, whichever of the two kinds."""
    return _of_log(REFLECT, space, log_id)


def remask_letter(space: int, log_id: int) -> Letter:
    """Have a model look for names in what a log took. One at a time per log, whatever of it runs."""
    return _of_log(REMASK, space, log_id)


def _of_log(kind: str, space: int, log_id: int) -> Letter:
    log = f"log:{log_id}"
    return Letter(kind, QueueClass.MEMORY, space, scope=log, dedup=log, payload={"log_id": log_id})


def export_letter(space: int, export: UUID, folder: str) -> Letter:
    """Make a package. Each export alone, so that several of one person may run at once."""
    return _of_export(EXPORT, QueueClass.INTERACTIVE, space, export, folder)


def expire_export_letter(space: int, export: UUID, folder: str) -> Letter:
    """Take a package away when its time is over, with whatever its runs left behind."""
    return _of_export(EXPIRE_EXPORT, QueueClass.HOUSEKEEPING, space, export, folder)


def _of_export(kind: str, queue_class: QueueClass, space: int, export: UUID, folder: str) -> Letter:
    scope = f"export:{export.hex}"
    return Letter(kind, queue_class, space, scope=scope, dedup=scope, payload={"export": export.hex, "folder": folder})


def erase_letter(space: int, erasure: UUID) -> Letter:
    """Delete what an erasure named, look for what is left, and prove it."""
    scope = f"erasure:{erasure.hex}"
    return Letter(ERASE, QueueClass.INTERACTIVE, space, scope=scope, dedup=scope, payload={"erasure": erasure.hex})


def distil_letter(space: int, distillation: UUID) -> Letter:
    """Look for what an agent can learn from a conversation or a task. Each request alone."""
    scope = f"distillation:{distillation.hex}"
    payload = {"distillation": distillation.hex}
    return Letter(DISTIL, QueueClass.INTERACTIVE, space, scope=scope, dedup=scope, payload=payload)


def expire_letter(space: int) -> Letter:
    """Delete what is past its term in a space."""
    scope = f"retention:{space}"
    return Letter(EXPIRE, QueueClass.HOUSEKEEPING, space, scope=scope, dedup=scope)


def deliver_letter(space: int, webhook: UUID) -> Letter:
    """Send what waits for one endpoint. One sender at a time, so that it is told in order."""
    scope = f"webhook:{webhook.hex}"
    return Letter(DELIVER, QueueClass.HOUSEKEEPING, space, scope=scope, dedup=scope, payload={"webhook": webhook.hex})


def seal_letter(space: int) -> Letter:
    """Order, chain and sign a space's receipts. One sequencer at a time."""
    scope = f"seals:{space}"
    return Letter(SEAL, QueueClass.HOUSEKEEPING, space, scope=scope, dedup=scope)
