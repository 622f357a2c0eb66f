"""Pseudonyms: which placeholder stands for which value of one person's, so that it is the same in all that they say."""

import json
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import BigInteger, Column
from sqlmodel import Field, SQLModel

from models.columns import space
from models.database import Connection
from models.sealed import SealedColumn
from privacy.sealing import Sealed, SealingKey

SEALED_PSEUDONYMS = "pseudonyms"  # the purpose under which they are sealed


class PseudonymBook(SQLModel, table=True):
    """One a subject: keyed digests of values and their placeholders, sealed. `version` counts what was written."""

    __tablename__ = "pseudonyms"

    subject_id: UUID = Field(primary_key=True)
    space_id: int = space()
    version: int = Field(sa_column=Column(BigInteger, nullable=False))
    sealed: Sealed = Field(sa_column=Column(SealedColumn, nullable=False))


@dataclass(slots=True)
class Pseudonyms:
    """What was given so far, as of a version (0: nothing). Masking adds to `given`."""

    version: int
    given: dict[str, str]
    kept: int

    @property
    def grown(self) -> bool:
        """Whether there is something to keep."""
        return len(self.given) > self.kept


async def read(connection: Connection, space_id: int, key: SealingKey) -> Pseudonyms:
    """The pseudonyms of the subject whose key this is."""
    query = "SELECT version, sealed FROM pseudonyms WHERE space_id = $1 AND subject_id = $2"
    row = await connection.fetchrow(query, space_id, key.id)
    given = {} if row is None else json.loads(key.open(row["sealed"], SEALED_PSEUDONYMS))
    return Pseudonyms(0 if row is None else row["version"], given, len(given))


_KEEP = """
INSERT INTO pseudonyms (subject_id, space_id, version, sealed) SELECT $1, $2, 1, $4 WHERE $3::bigint = 0
ON CONFLICT (subject_id) DO NOTHING RETURNING version
"""
_MOVE = """
UPDATE pseudonyms SET version = version + 1, sealed = $4
WHERE subject_id = $1 AND space_id = $2 AND version = $3 RETURNING version
"""


async def keep(connection: Connection, space_id: int, key: SealingKey, pseudonyms: Pseudonyms) -> bool:
    """Keeps what has been added. False where somebody else added meanwhile: read again, and mask again.

    Asyncpg's ForeignKeyViolationError where the subject is gone.
    """
    sealed = key.seal(json.dumps(pseudonyms.given), SEALED_PSEUDONYMS)
    statement = _MOVE if pseudonyms.version else _KEEP
    version = await connection.fetchval(statement, key.id, space_id, pseudonyms.version, sealed)
    if version is None:
        return False
    pseudonyms.version, pseudonyms.kept = version, len(pseudonyms.given)
    return True
