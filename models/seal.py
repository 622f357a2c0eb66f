"""Seals: the chain over a space's receipts. One sequencer at a time; a fork is refused by the table itself."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models import receipt as receipts
from models.columns import moment, space
from models.database import Connection
from privacy import receipt_proof

_MOST = 10_000  # receipts of one seal
_COLUMNS = "id, space_id, at, actor, action, ids::text AS ids, counts::text AS counts, seal, place"

Sign = Callable[[Mapping[str, Any]], Mapping[str, str]]


class Seal(SQLModel, table=True):
    """`document` is what was signed; `hash` its canonical bytes' SHA-256, which the next seal's `previous` repeats.

    `leaves` are its receipts' hashes, 32 bytes each in their order: a root alone shows that something was altered,
    and they show what.
    """

    __tablename__ = "seals"
    __table_args__ = (UniqueConstraint("space_id", "previous"),)

    space_id: int = space(primary_key=True)
    number: int = Field(sa_column=Column(BigInteger, primary_key=True))
    previous: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    hash: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    size: int
    total: int = Field(sa_column=Column(BigInteger, nullable=False))
    leaves: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    document: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    signature: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    expired: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    at: datetime = moment()


async def waiting(connection: Connection) -> list[int]:
    """Spaces that have unsealed receipts. The transaction sees every space."""
    rows = await connection.fetch("SELECT DISTINCT space_id FROM receipts WHERE seal IS NULL")
    return [row["space_id"] for row in rows]


async def seal_next(connection: Connection, space: int, sign: Sign) -> int:
    """Seals the receipts that wait, at most 10,000; answers how many. Another sequencer at it waits for this commit.

    Receipts commit in no order that anybody could know beforehand: those that are here now are put in one.
    """
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('afterturn/seals'), $1)", space)
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM receipts WHERE space_id = $1 AND seal IS NULL ORDER BY at, id LIMIT {_MOST}",  # noqa: S608 - constants
        space,
    )
    if not rows:
        return 0
    last = await connection.fetchrow(
        "SELECT number, hash, total FROM seals WHERE space_id = $1 ORDER BY number DESC LIMIT 1", space
    )
    number = last["number"] + 1 if last else 1
    await _add(connection, space, number, last, rows, sign)
    await connection.execute(
        """
        UPDATE receipts r SET seal = $2, place = n.place - 1
        FROM unnest($3::uuid[]) WITH ORDINALITY AS n (id, place) WHERE r.id = n.id AND r.space_id = $1
        """,
        *(space, number, [row["id"] for row in rows]),
    )
    return len(rows)


async def _add(connection: Connection, space: int, number: int, last: Any, rows: Sequence[Any], sign: Sign) -> None:
    previous = last["hash"] if last else receipt_proof.BEGINNING
    total = (last["total"] if last else 0) + len(rows)
    at = await connection.fetchval("SELECT clock_timestamp()")
    hashes = [receipt_proof.leaf_hash(_leaf(row)) for row in rows]
    document = receipt_proof.seal_document(space, number, previous, hashes, total, receipt_proof.moment(at))
    await connection.execute(
        "INSERT INTO seals (space_id, number, previous, hash, size, total, leaves, document, signature, at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9::text::jsonb, $10)",
        *(space, number, previous, receipt_proof.seal_hash(document), len(rows), total, b"".join(hashes)),
        *(json.dumps(document), json.dumps(dict(sign(document))), at),
    )


async def proof(connection: Connection, space: int, receipt: UUID) -> dict[str, Any] | None:
    """That the chain holds a receipt: the receipt, its way up the tree, and the signed seal. None until it is sealed."""
    place = await connection.fetchrow(
        "SELECT seal, place FROM receipts WHERE space_id = $1 AND id = $2 AND seal IS NOT NULL", space, receipt
    )
    if place is None:
        return None
    leaves = [_leaf(row) for row in await _of_seal(connection, space, place["seal"])]
    tree = receipt_proof.inclusion([receipt_proof.leaf_hash(leaf) for leaf in leaves], place["place"])
    sealed = await connection.fetchrow(_SEALED + " AND number = $2", space, place["seal"])
    return {
        "receipt": leaves[place["place"]],
        "index": tree.index,
        "size": tree.size,
        "path": [step.hex() for step in tree.path],
        "seal": _document(sealed),
    }


_SEALED = (
    "SELECT document::text AS document, signature::text AS signature, leaves, expired FROM seals WHERE space_id = $1"
)


async def checkpoint(connection: Connection, space: int) -> dict[str, Any] | None:
    """The newest seal, to be kept elsewhere: whoever has it can tell a tail that was cut off. None before the first."""
    row = await connection.fetchrow(_SEALED + " ORDER BY number DESC LIMIT 1", space)
    return None if row is None else _document(row)


async def chain(connection: Connection, space: int, after: int, most: int) -> list[dict[str, Any]]:
    """The seals after one, in order, each with its leaves and its receipts; an expired one has no receipts."""
    rows = await connection.fetch(_SEALED + " AND number > $2 ORDER BY number LIMIT $3", space, after, most)
    sealed = [_document(row) | {"expired": row["expired"], "leaves": _hashes(row["leaves"])} for row in rows]
    return [
        one | {"receipts": [_leaf(row) for row in await _of_seal(connection, space, one["document"]["number"])]}
        for one in sealed
    ]


async def unsealed(connection: Connection, space: int) -> int:
    """How many receipts wait for their seal."""
    return int(
        await connection.fetchval("SELECT count(*) FROM receipts WHERE space_id = $1 AND seal IS NULL", space) or 0
    )


async def expire(connection: Connection, space: int, before: datetime, most: int) -> int:
    """Deletes the receipts of the oldest whole seals made before an instant; roots and signatures stay. Answers rows."""
    number = await connection.fetchval(
        "SELECT min(number) FROM seals WHERE space_id = $1 AND NOT expired AND at < $2", space, before
    )
    if number is None:
        return 0
    # A seal goes whole or not at all: `most` says when to stop, not where to cut.
    gone = await connection.execute("DELETE FROM receipts WHERE space_id = $1 AND seal = $2", space, number)
    await connection.execute("UPDATE seals SET expired = true WHERE space_id = $1 AND number = $2", space, number)
    rows = int(gone.split()[-1])
    return rows + (await expire(connection, space, before, most - rows) if rows < most else 0)


async def _of_seal(connection: Connection, space: int, number: int) -> list[Any]:
    query = f"SELECT {_COLUMNS} FROM receipts WHERE space_id = $1 AND seal = $2 ORDER BY place"  # noqa: S608 - constants
    return await connection.fetch(query, space, number)


def _hashes(leaves: bytes) -> list[str]:
    return [leaves[at : at + 32].hex() for at in range(0, len(leaves), 32)]


def _leaf(row: Any) -> dict[str, Any]:
    return receipts.leaf(dict(row) | {"ids": json.loads(row["ids"]), "counts": json.loads(row["counts"])})


def _document(row: Any) -> dict[str, Any]:
    return {"document": json.loads(row["document"]), "signature": json.loads(row["signature"])}
