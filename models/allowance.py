"""How much of something was done within the last hour: counted under a row's lock, so that it is exact."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import Column, DateTime, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from models.columns import space
from models.database import Connection

_NONE = text("'{}'")


class Allotted(StrEnum):
    """What is counted."""

    WRITES = "writes"  # of an agent: new notes and edits
    REFUSALS = "refusals"  # of a key: attempts that held personal data


class Allowance(SQLModel, table=True):
    """`whose` is an agent's name or a key's id; `spent` the instants within the hour, oldest first."""

    __tablename__ = "note_allowances"

    space_id: int = space(primary_key=True)
    whose: str = Field(primary_key=True)
    what: str = Field(primary_key=True)
    spent: list[datetime] = Field(
        sa_column=Column(ARRAY(DateTime(timezone=True)), nullable=False, server_default=_NONE)
    )


_RECENT = """
INSERT INTO note_allowances AS a (space_id, whose, what) VALUES ($1, $2, $3)
ON CONFLICT (space_id, whose, what) DO UPDATE SET spent = ARRAY(
    SELECT at FROM unnest(a.spent) AS s (at) WHERE at > clock_timestamp() - interval '1 hour' ORDER BY at)
RETURNING cardinality(a.spent) AS number,
    extract(epoch FROM a.spent[greatest(1, cardinality(a.spent) - $4 + 1)] + interval '1 hour' - clock_timestamp()) AS wait
"""


async def spend(connection: Connection, space_id: int, whose: str, what: Allotted, most: int) -> float | None:
    """Spends one of `most` an hour, and answers None; or the seconds until there is one to spend.

    Whoever spends of the same row waits until this transaction ends, and what it does not commit was not spent.
    """
    wait = await left(connection, space_id, whose, what, most)
    if wait is None:
        await connection.execute(
            "UPDATE note_allowances SET spent = spent || clock_timestamp() WHERE space_id = $1 AND whose = $2 AND what = $3",
            *(space_id, whose, what),
        )
    return wait


async def left(connection: Connection, space_id: int, whose: str, what: Allotted, most: int) -> float | None:
    """None where there is one to spend, or the seconds until there is. The row stays locked."""
    row = await connection.fetchrow(_RECENT, space_id, whose, what, most)
    return None if row["number"] < most else max(0.0, float(row["wait"]))
