"""Retention: how long a space keeps each data set. What is past its term is dead at once, and never comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Column, DateTime, Interval, text
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection
from models.dataset import see_expired

KEPT_SETS = ("turns", "observations", "generations", "model_usage", "receipts")
SHORTEST = {"receipts": timedelta(days=365)}

_AGE = {"turns": "created_at", "observations": "born_at", "generations": "created_at", "model_usage": "created_at"}
_STATE = text("'-infinity'")


class Retention(SQLModel, table=True):
    """`term` None: for ever. `floor` only rises. `with_source` (observations): a line goes with its last evidence."""

    __tablename__ = "retention"

    space_id: int = space(primary_key=True)
    data_set: str = Field(primary_key=True)
    term: timedelta | None = Field(default=None, sa_column=Column(Interval, nullable=True))
    floor: datetime = Field(sa_column=Column(DateTime(timezone=True), nullable=False, server_default=_STATE))
    with_source: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    version: int = Field(default=1, sa_column=Column(BigInteger, nullable=False, server_default="1"))
    changed_at: datetime = created()


@dataclass(frozen=True, slots=True)
class Terms:
    """What a space's document says. A data set that `terms` does not name is kept for ever."""

    terms: Mapping[str, timedelta | None]
    with_source: bool = False


async def read(connection: Connection, space_id: int) -> tuple[Terms, int]:
    """The space's terms, and the version of the document; version 0 where none was ever set."""
    rows = await connection.fetch(
        "SELECT data_set, term, with_source, version FROM retention WHERE space_id = $1", space_id
    )
    terms = {row["data_set"]: row["term"] for row in rows}
    return Terms(terms, any(row["with_source"] for row in rows)), max((row["version"] for row in rows), default=0)


async def change(connection: Connection, space_id: int, terms: Terms) -> int:
    """Sets the whole document; answers its version. Each floor first rises to where the old term had come."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('afterturn/retention'), $1)", space_id)
    version = (await read(connection, space_id))[1] + 1
    for data_set in KEPT_SETS:
        await connection.execute(
            """
            INSERT INTO retention (space_id, data_set, term, with_source, version) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (space_id, data_set) DO UPDATE SET floor = horizon($1, $2), term = excluded.term,
                with_source = excluded.with_source, version = excluded.version, changed_at = now()
            """,
            *(space_id, data_set, terms.terms.get(data_set)),
            *(terms.with_source and data_set == "observations", version),
        )
    return version


async def preview(connection: Connection, space_id: int, terms: Terms) -> dict[str, int]:
    """How many rows each data set would lose on top of what is dead already. Nothing is changed."""
    await see_expired(connection)
    counts = {}
    for data_set, age in _AGE.items():
        term = terms.terms.get(data_set)
        counts[data_set] = 0
        if term is not None:
            query = (
                f"SELECT count(*) FROM {data_set} WHERE space_id = $1 AND {age} <= now() - $3::interval"  # noqa: S608 - constants
                f" AND {age} > horizon($1, $2)"
            )
            counts[data_set] = int(await connection.fetchval(query, space_id, data_set, term))
    return counts


async def overdue(connection: Connection) -> list[int]:
    """Spaces in which some data set has a horizon at all. The transaction sees every space."""
    rows = await connection.fetch(
        "SELECT DISTINCT space_id FROM retention WHERE horizon(space_id, data_set) > '-infinity'"
    )
    return [row["space_id"] for row in rows]


async def horizon(connection: Connection, space_id: int, data_set: str) -> datetime | None:
    """The instant at or before which a row of the data set is dead; None: nothing is."""
    at: datetime | None = await connection.fetchval("SELECT nullif(horizon($1, $2), '-infinity')", space_id, data_set)
    return at
