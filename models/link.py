"""Links: which subjects are said to be one person. Their logs, keys and handles stay each its own."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint
from sqlmodel import Field, SQLModel

from models import hold
from models.columns import created, space
from models.database import Connection


class Link(SQLModel, table=True):
    """`subject_id` is the smaller of the two, so that a pair is one row. What was confirmed once stays confirmed."""

    __tablename__ = "links"
    __table_args__ = (CheckConstraint("subject_id < other_id"),)

    space_id: int = space(primary_key=True)
    subject_id: UUID = Field(primary_key=True)
    other_id: UUID = Field(primary_key=True, index=False)
    confirmed: bool
    created_at: datetime = created()


async def link(connection: Connection, space_id: int, subject: UUID, other: UUID, *, confirmed: bool) -> None:
    """Says that two subjects are one person: whoever holds one holds both. Asyncpg's ForeignKeyViolationError where one of them is gone."""
    if subject == other:
        return
    if confirmed:
        await hold.keep_still(connection, space_id, alone=True)
    await connection.execute(
        "INSERT INTO links (space_id, subject_id, other_id, confirmed)"
        " VALUES ($1, least($2::uuid, $3::uuid), greatest($2::uuid, $3::uuid), $4)"
        " ON CONFLICT (space_id, subject_id, other_id)"
        " DO UPDATE SET confirmed = links.confirmed OR excluded.confirmed",
        *(space_id, subject, other, confirmed),
    )
    if confirmed:
        await hold.spread(connection, space_id, subject)


async def leads_out(connection: Connection, space_id: int, people: Sequence[UUID]) -> bool:
    """Whether a confirmed link leads from one of the subjects to somebody who is none of them."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM links WHERE space_id = $1 AND confirmed"
            " AND (subject_id = ANY ($2::uuid[]) OR other_id = ANY ($2::uuid[]))"
            " AND NOT (subject_id = ANY ($2::uuid[]) AND other_id = ANY ($2::uuid[])))",
            *(space_id, list(people)),
        )
    )


async def unconfirmed(connection: Connection, space_id: int, people: Sequence[UUID]) -> int:
    """How many others the subjects are linked with by nobody's confirmation."""
    found: int = await connection.fetchval(
        """
        SELECT count(DISTINCT other) FROM (
            SELECT unnest(ARRAY[subject_id, other_id]) AS other FROM links
            WHERE space_id = $1 AND NOT confirmed AND (subject_id = ANY ($2::uuid[]) OR other_id = ANY ($2::uuid[]))
        ) linked WHERE other <> ALL ($2::uuid[])
        """,
        *(space_id, list(people)),
    )
    return found
