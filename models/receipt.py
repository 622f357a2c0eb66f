"""Receipts: one row for each governed act, written in the transaction of its effect. Ids and counts, never a text.

Writers never wait for each other: a receipt is born unsealed, and the sealing job orders and chains it afterwards.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, Column, Index, Integer, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection
from privacy.receipt_proof import moment

_UNSEALED, _SEALED = text("seal IS NULL"), text("seal IS NOT NULL")
_LARGEST = 2**53 - 1  # what every reader of JSON takes for the same number
Ids = Mapping[str, str | int | Sequence[str] | Sequence[int]]


class StoredReceipt(SQLModel, table=True):
    """`seal` is the number of the seal that committed to it, `place` its leaf there; NULL until the sealing job came by."""

    __tablename__ = "receipts"
    __table_args__ = (
        Index("receipts_unsealed", "space_id", "at", postgresql_where=_UNSEALED),
        Index("receipts_in_seals", "space_id", "seal", "place", unique=True, postgresql_where=_SEALED),
        Index("receipts_by_time", "space_id", "at", "id"),
    )

    id: UUID = Field(sa_column=Column(Uuid, primary_key=True))
    space_id: int = space()
    at: datetime = created()
    actor: str
    action: str
    ids: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    counts: dict[str, int] = Field(sa_column=Column(JSONB, nullable=False))
    seal: int | None = Field(default=None, sa_column=Column(BigInteger))
    place: int | None = Field(default=None, sa_column=Column(Integer))


@dataclass(frozen=True, slots=True)
class Receipt:
    """`actor` is a key's id, `cli:<opaque id>` or `job:<kind>`; `action` is `noun.verb`, as `export.requested`."""

    space: int
    actor: str
    action: str
    ids: Ids = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


async def write(connection: Connection, receipt: Receipt) -> UUID:
    """Writes a receipt in the caller's transaction, which is bound to the receipt's space; answers its id.

    ValueError: it holds something that has no canonical form, as a whole number past 2^53, and could never be sealed.
    """
    _check(receipt)
    receipt_id = uuid4()
    await connection.execute(
        "INSERT INTO receipts (id, space_id, actor, action, ids, counts)"
        " VALUES ($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb)",
        *(receipt_id, receipt.space, receipt.actor, receipt.action),
        *(json.dumps(dict(receipt.ids)), json.dumps(dict(receipt.counts))),
    )
    return receipt_id


def _check(receipt: Receipt) -> None:
    # Each by itself, not the canonical form of all: that is made when it is sealed, and no act waits for it twice.
    for one in (*receipt.ids.values(), *receipt.counts.values()):
        for value in (one,) if isinstance(one, str | int) else one:
            if not isinstance(value, str | int) or (isinstance(value, int) and abs(value) > _LARGEST):
                raise ValueError(f"a receipt of {receipt.action} takes text and whole numbers up to 2^53")


_LISTED = """
SELECT id, at, actor, action, ids::text AS ids, counts::text AS counts, seal FROM receipts
WHERE space_id = $1 AND ($2::text IS NULL OR action = $2) AND ($3::timestamptz IS NULL OR (at, id) > ($3, $4::uuid))
ORDER BY at, id LIMIT $5
"""


async def listed(
    connection: Connection, space: int, after: UUID | None, action: str | None, most: int
) -> list[dict[str, Any]] | None:
    """The receipts after one, oldest first, of one kind of action or all; None where there is no such receipt."""
    at = None
    if after is not None:
        at = await connection.fetchval("SELECT at FROM receipts WHERE space_id = $1 AND id = $2", space, after)
        if at is None:
            return None
    rows = await connection.fetch(_LISTED, space, action, at, after, most)
    return [dict(row) | {"ids": json.loads(row["ids"]), "counts": json.loads(row["counts"])} for row in rows]


async def exists(connection: Connection, space: int, receipt: UUID) -> bool:
    """Whether the space has the receipt, sealed or not."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM receipts WHERE space_id = $1 AND id = $2)", space, receipt
        )
    )


def leaf(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is hashed of a stored receipt: all of it, as text that is the same everywhere."""
    return {
        "version": 1,
        "id": opaque(row["id"]),
        "space": str(row["space_id"]),
        "at": moment(row["at"]),
        "actor": row["actor"],
        "action": row["action"],
        "ids": row["ids"],
        "counts": row["counts"],
    }


def opaque(receipt: UUID) -> str:
    """A receipt's id as the API shows it."""
    return f"rct_{receipt.hex}"
