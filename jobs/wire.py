"""What Redis carries: a bell, as an arq job in JSON. Ids only, never a text, never pickle."""

import json
from collections.abc import Container
from typing import Any

from arq.jobs import DeserializationError, deserialize_job_raw, serialize_job

from models.claim import Rung

FUNCTION = "work"  # the one arq function: it claims the row that the bell names
LASTS = 600_000  # milliseconds; a bell is disposable, the scheduler rings again
_LONGEST = 1_000  # bytes; what is longer is no bell of ours


class NotUnderstood(Exception):
    """This is no bell: undecodable, or of an unknown function."""


def queue(queue_class: str) -> str:
    """The arq queue of a class: a sorted set of job ids."""
    return f"afterturn:{queue_class}"


def job_id(queue_class: str, work_id: int, epoch: int) -> str:
    """`class:work id:epoch`. A row that was claimed and came back has a new id, so no old bell is in its way."""
    return f"{queue_class}:{work_id}:{epoch}"


def encode(content: Any) -> bytes:
    """arq's serializer."""
    return json.dumps(content, separators=(",", ":")).encode()


def decode(content: bytes) -> Any:
    """arq's deserializer."""
    if len(content) > _LONGEST:
        raise ValueError("too long for a bell")
    return json.loads(content)


def wrap(work_id: int, epoch: int, now_ms: int) -> bytes:
    """The arq job of a bell."""
    return serialize_job(FUNCTION, (work_id, epoch), {}, None, now_ms, serializer=encode)


def unwrap(content: bytes, functions: Container[str]) -> Rung:
    """The bell in an arq job; NotUnderstood says what is wrong with it, without quoting it."""
    try:
        function, arguments, _, _, _ = deserialize_job_raw(content, deserializer=decode)
    except DeserializationError:
        raise NotUnderstood("undecodable") from None
    if function not in functions:
        raise NotUnderstood("unknown function")
    if not _are_ids(arguments):
        raise NotUnderstood("arguments are no ids")
    return Rung(*arguments)


def _are_ids(arguments: Any) -> bool:
    return (
        isinstance(arguments, list)
        and len(arguments) == 2
        and all(type(one) is int and 0 <= one < 2**63 for one in arguments)
    )
