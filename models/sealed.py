"""The one column type for text about a person: it takes sealed bytes and nothing else."""

from typing import Any

from sqlalchemy import LargeBinary
from sqlalchemy.types import TypeDecorator

from privacy.sealing import Sealed

_SHORTEST = 29  # version, nonce and tag around an empty text


class SealedColumn(TypeDecorator[Sealed]):
    """bytea that refuses a plain text, also one that was merely encoded."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        if value is None:
            return None
        if not isinstance(value, bytes) or len(value) < _SHORTEST or value[:1] != b"\x01":
            raise TypeError("a sealed column takes what SealingKey.seal gave")
        return value

    def process_result_value(self, value: Any, dialect: Any) -> Sealed | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else Sealed(bytes(value))
