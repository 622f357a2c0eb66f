"""Retention: how long a space keeps each data set. What is past its term is dead at once, and never comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Column, DateTime, Interval, text
from sqlmodel import Field, SQLModel

from models.columns import created, space
from models.database import Connection
from models.dataset import see_expired
from models.kept import KEPT

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
    """What a space's document says; None: for ever. What `terms` does not name has its default."""

    terms: Mapping[str, timedelta | None]
    with_source: bool = False

    def of(self, data_set: str) -> timedelta | None:
        """The term of one data set."""
        return self.terms.get(data_set, KEPT[data_set].default)


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
    for data_set in KEPT:
        await connection.execute(
            """
            INSERT INTO retention (space_id, data_set, term, with_source, version) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (space_id, data_set) DO UPDATE SET floor = horizon($1, $2), term = excluded.term,
                with_source = excluded.with_source, version = excluded.version, changed_at = now()
            """,
            *(space_id, data_set, terms.of(data_set)),
            *(terms.with_source and data_set == "observations", version),
        )
    await connection.execute(_PACKAGES, space_id, terms.of("packages"))
    return version


# When a package goes is written down as it is made. A shorter term takes it sooner; none gives it back.
_PACKAGES = """
WITH sooner AS (
    UPDATE exports SET expires_at = finished_at + $2::interval
    WHERE space_id = $1 AND state = 'ready' AND expires_at > finished_at + $2::interval RETURNING id, expires_at
)
UPDATE work w SET run_at = sooner.expires_at, rung_at = NULL FROM sooner
WHERE w.kind = 'expire_export' AND w.state = 'ready' AND w.dedup = 'export:' || replace(sooner.id::text, '-', '')
"""


async def preview(connection: Connection, space_id: int, terms: Terms) -> dict[str, int]:
    """How many rows each data set would lose on top of what is dead already. The caller's transaction is left as it was."""
    await see_expired(connection)
    before = await _past(connection, space_id)
    await connection.execute("SAVEPOINT preview")
    await change(connection, space_id, terms)
    after = await _past(connection, space_id)
    await connection.execute("ROLLBACK TO SAVEPOINT preview")
    return {data_set: after[data_set] - before[data_set] for data_set in KEPT}


async def _past(connection: Connection, space_id: int) -> dict[str, int]:
    counts = {}
    for data_set, kept in KEPT.items():
        query = f"SELECT count(*) FROM {kept.table} t WHERE space_id = $1 AND ({kept.past})"  # noqa: S608 - constants
        counts[data_set] = int(await connection.fetchval(query, space_id))
    return counts


_OVERDUE = " UNION ".join(
    f"SELECT space_id FROM retention r WHERE data_set = '{data_set}' AND EXISTS ("  # noqa: S608 - constants
    f" SELECT FROM {kept.table} t WHERE t.space_id = r.space_id AND t.{kept.age} <= horizon(r.space_id, '{data_set}'))"
    for data_set, kept in KEPT.items()
    if kept.age is not None
)
# The terms of agent state are written down with it.
_STATES = "SELECT space_id FROM states WHERE expires_at <= now() UNION SELECT space_id FROM state_fields WHERE expires_at <= now()"


async def overdue(connection: Connection) -> list[int]:
    """Spaces with a row past its term, where an index tells. The transaction sees every space."""
    return [row["space_id"] for row in await connection.fetch(f"{_OVERDUE} UNION {_STATES}")]


async def with_terms(connection: Connection) -> list[int]:
    """Spaces in which anything can be past its term. The transaction sees every space."""
    rows = await connection.fetch(
        f"SELECT space_id FROM retention WHERE horizon(space_id, data_set) > '-infinity' UNION {_STATES}"  # noqa: S608 - a constant
    )
    return [row["space_id"] for row in rows]


async def horizon(connection: Connection, space_id: int, data_set: str) -> datetime | None:
    """The instant at or before which a row of the data set is dead; None: nothing is."""
    at: datetime | None = await connection.fetchval("SELECT nullif(horizon($1, $2), '-infinity')", space_id, data_set)
    return at


_FORGET_ANNOUNCED = """
DELETE FROM announcements WHERE id IN (
    SELECT announcement FROM spaces s CROSS JOIN LATERAL (
        SELECT id FROM announcements a
        WHERE a.space_id = s.id AND a.created_at <= now() - $1::interval
            AND NOT EXISTS (SELECT FROM deliveries d WHERE d.announcement_id = a.id AND d.state = 'waiting')
        ORDER BY a.created_at LIMIT $2) old (announcement)
    LIMIT $2)
"""


async def forget_announced(connection: Connection, older_than: timedelta, most: int = 1_000) -> int:
    """Deletes what was announced so long ago and waits to reach nobody, with its deliveries, over all spaces."""
    done: str = await connection.execute(_FORGET_ANNOUNCED, older_than, most)
    return int(done.rsplit(" ", 1)[1])
