"""Seals: the chain over a space's receipts. One sequencer at a time; a fork is refused by the table itself."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import BigInteger, Column, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models import receipt as receipts
from models.columns import moment, space
from models.database import Connection
from models.dataset import see_expired
from models.receipt import Receipt
from privacy import receipt_proof

_MOST = 10_000  # receipts of one seal
_AT_ONCE = 20  # seals read in one go
_COLUMNS = "id, space_id, at, actor, action, ids::text AS ids, counts::text AS counts"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('afterturn/seals'), $1)"


class Outdated(Exception):
    """Another key took over meanwhile: this one seals nothing any more. Load the current one and try again."""


class Signs(Protocol):
    """What a signing key must be able to do. `handovers` led to it, oldest first."""

    @property
    def key_id(self) -> str: ...

    @property
    def handovers(self) -> Sequence[Mapping[str, Any]]: ...

    def signed(self, document: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def signature(self, document: Mapping[str, Any]) -> Mapping[str, str]: ...


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
    expiry: dict[str, Any] | None = Field(default=None, sa_column=Column(JSONB))
    at: datetime = moment()


async def waiting(connection: Connection) -> list[int]:
    """Spaces that have unsealed receipts. The transaction sees every space."""
    rows = await connection.fetch("SELECT DISTINCT space_id FROM receipts WHERE seal IS NULL")
    return [row["space_id"] for row in rows]


async def seal_next(connection: Connection, space: int, signer: Signs) -> int:
    """Seals the receipts that wait, at most 10,000; answers how many. Another sequencer at it waits for this commit.

    Receipts commit in no order that anybody could know beforehand: those that are here now are put in one. Outdated:
    the signer's key is not the chain's newest.
    """
    await connection.execute(_ONE_AT_A_TIME, space)
    await see_expired(
        connection
    )  # what waited past its term is sealed all the same: nothing else would end its waiting
    last = await connection.fetchrow(
        "SELECT number, hash, total, signature->>'key_id' AS key_id FROM seals WHERE space_id = $1"
        " ORDER BY number DESC LIMIT 1",
        space,
    )
    rows = await _unsealed(connection, space)
    if not rows:
        return 0
    if last is not None and last["key_id"] != signer.key_id:
        for handover in _since(last["key_id"], signer):
            await receipts.write(connection, _takes_over(space, handover))
        rows = await _unsealed(connection, space)
    number = last["number"] + 1 if last else 1
    await _add(connection, space, number, last, rows, signer)
    await connection.execute(
        """
        UPDATE receipts r SET seal = $2, place = n.place - 1
        FROM unnest($3::uuid[]) WITH ORDINALITY AS n (id, place) WHERE r.id = n.id AND r.space_id = $1
        """,
        *(space, number, [row["id"] for row in rows]),
    )
    return len(rows)


async def _unsealed(connection: Connection, space: int) -> list[Any]:
    return await connection.fetch(
        f"SELECT {_COLUMNS} FROM receipts WHERE space_id = $1 AND seal IS NULL ORDER BY at, id LIMIT {_MOST}",  # noqa: S608 - constants
        space,
    )


def _since(key_id: str, signer: Signs) -> Sequence[Mapping[str, Any]]:
    """The handovers from the key of the last seal to the signer's."""
    for place, handover in enumerate(signer.handovers):
        if handover["by_old"]["key_id"] == key_id:
            return signer.handovers[place:]
    raise Outdated


def _takes_over(space: int, handover: Mapping[str, Any]) -> Receipt:
    """The chain itself tells of the new key, with both signatures."""
    old, new = handover["by_old"], handover["by_new"]
    ids = {"from": old["key_id"], "to": new["key_id"], "by_from": old["value"], "by_to": new["value"]}
    return Receipt(space, "job:seal", "signing_key.rotated", ids)


async def _add(connection: Connection, space: int, number: int, last: Any, rows: Sequence[Any], signer: Signs) -> None:
    previous = last["hash"] if last else receipt_proof.BEGINNING
    total = (last["total"] if last else 0) + len(rows)
    at = await connection.fetchval("SELECT clock_timestamp()")
    hashes = [receipt_proof.leaf_hash(_leaf(row)) for row in rows]
    document = receipt_proof.seal_document(space, number, previous, hashes, total, receipt_proof.moment(at))
    await connection.execute(
        "INSERT INTO seals (space_id, number, previous, hash, size, total, leaves, document, signature, at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9::text::jsonb, $10)",
        *(space, number, previous, receipt_proof.seal_hash(document), len(rows), total, b"".join(hashes)),
        *(json.dumps(document), json.dumps(dict(signer.signature(document))), at),
    )


async def proof(connection: Connection, space: int, receipt: UUID) -> dict[str, Any] | None:
    """That the chain holds a receipt: the receipt, its way up the tree, and the signed seal. None until it is sealed."""
    row = await connection.fetchrow(
        f"SELECT {_COLUMNS}, seal, place FROM receipts WHERE space_id = $1 AND id = $2 AND seal IS NOT NULL",  # noqa: S608 - constants
        *(space, receipt),
    )
    sealed = row and await connection.fetchrow(_SEALED + " AND number = $2", space, row["seal"])
    if sealed is None:
        return None
    tree = receipt_proof.inclusion(list(_hashes(sealed["leaves"])), row["place"])
    return {
        "receipt": _leaf(row),
        "index": tree.index,
        "size": tree.size,
        "path": [step.hex() for step in tree.path],
        "seal": _document(sealed),
    }


_SEALED = "SELECT document::text AS document, signature::text AS signature, leaves FROM seals WHERE space_id = $1"

# One statement, so that a link and its receipts are of one instant, whatever is sealed or expires meanwhile.
_LINKS = """
SELECT s.number, s.document::text AS document, s.signature::text AS signature, s.leaves,
    CASE WHEN s.expired THEN (SELECT e.expiry::text FROM seals e WHERE e.space_id = $1 AND e.expiry IS NOT NULL
                              ORDER BY e.number DESC LIMIT 1) END AS expired,
    ARRAY(SELECT row_to_json(r)::text FROM receipts r WHERE r.space_id = $1 AND r.seal = s.number ORDER BY r.place)
        AS receipts
FROM seals s WHERE s.space_id = $1 AND s.number > $2 AND s.number <= $3 ORDER BY s.number LIMIT $4
"""


async def checkpoint(connection: Connection, space: int) -> dict[str, Any] | None:
    """The newest seal, to be kept elsewhere: whoever has it can tell a tail that was cut off. None before the first."""
    row = await connection.fetchrow(_SEALED + " ORDER BY number DESC LIMIT 1", space)
    return None if row is None else _document(row)


async def newest(connection: Connection, space: int) -> int:
    """The number of the newest seal; 0 before the first."""
    return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM seals WHERE space_id = $1", space))


async def chain(connection: Connection, space: int, after: int, through: int) -> list[dict[str, Any]]:
    """The next seals after one and up to another, at most 20, in order, each with its leaves and its receipts.

    What is past its term and not swept yet is there: a chain without it could not be told from one that was tampered with.
    """
    await see_expired(connection)
    return [_link(row) for row in await connection.fetch(_LINKS, space, after, through, _AT_ONCE)]


async def strays(connection: Connection, space: int) -> list[str]:
    """Receipts that claim a seal which is not there: somebody else than the sealing job put them in."""
    await see_expired(connection)
    rows = await connection.fetch(
        "SELECT id FROM receipts r WHERE space_id = $1 AND seal IS NOT NULL AND NOT EXISTS"
        " (SELECT FROM seals s WHERE s.space_id = $1 AND s.number = r.seal) ORDER BY at, id LIMIT 1000",
        space,
    )
    return [receipts.opaque(row["id"]) for row in rows]


async def expire(connection: Connection, space: int, before: datetime, most: int, signer: Signs) -> int:
    """Deletes the receipts of the oldest whole seals made before an instant; roots and signatures stay. Answers rows.

    A seal goes whole or not at all: `most` says after how many rows to stop, not where to cut.
    """
    await connection.execute(_ONE_AT_A_TIME, space)
    rows = await connection.fetch(
        "SELECT number, size, at FROM seals WHERE space_id = $1 AND NOT expired ORDER BY number LIMIT $2", space, most
    )
    gone = list(_oldest(rows, before, most))
    if not gone:
        return 0
    at = receipt_proof.moment(await connection.fetchval("SELECT clock_timestamp()"))
    word = signer.signed(receipt_proof.expiry_document(space, gone[-1], at))
    deleted = await connection.execute(
        "DELETE FROM receipts WHERE space_id = $1 AND seal BETWEEN $2 AND $3", space, gone[0], gone[-1]
    )
    await connection.execute(
        "UPDATE seals SET expired = true, expiry = CASE WHEN number = $2 THEN $3::text::jsonb END"
        " WHERE space_id = $1 AND number <= $2 AND (NOT expired OR expiry IS NOT NULL)",
        *(space, gone[-1], json.dumps({name: word[name] for name in ("document", "signature")})),
    )
    return int(deleted.split()[-1])


def _oldest(rows: Sequence[Any], before: datetime, most: int) -> Iterator[int]:
    """The seals that may go, in their order: a clock that went back makes none of them older than the one before it."""
    for row in rows:
        if row["at"] >= before or most <= 0:
            return
        yield row["number"]
        most -= row["size"]


def _hashes(leaves: bytes) -> Iterator[bytes]:
    return (leaves[at : at + 32] for at in range(0, len(leaves), 32))


def _leaf(row: Any) -> dict[str, Any]:
    return receipts.leaf(dict(row) | {"ids": json.loads(row["ids"]), "counts": json.loads(row["counts"])})


def _link(row: Any) -> dict[str, Any]:
    told = [json.loads(receipt) for receipt in row["receipts"]]
    return _document(row) | {
        "number": row["number"],  # to go on from: what the document says is for the verifier
        "leaves": [leaf.hex() for leaf in _hashes(row["leaves"])],
        "expired": None if row["expired"] is None else json.loads(row["expired"]),
        "receipts": [
            receipts.leaf(one | {"id": UUID(one["id"]), "at": datetime.fromisoformat(one["at"])}) for one in told
        ],
    }


def _document(row: Any) -> dict[str, Any]:
    return {"document": json.loads(row["document"]), "signature": json.loads(row["signature"])}
