"""The live schema, as PostgreSQL tells it: the census and the residue scan go by this, never by what the code believes."""

from typing import NamedTuple

from models.database import Connection

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS type
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p', 'm') AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""

# Enumerations, domains and extensions' types count as text: nobody has said that they cannot hold any.
NO_TEXT = frozenset(
    {
        "bigint",
        "bigint[]",
        "boolean",
        "date",
        "double precision",
        "integer",
        "integer[]",
        "interval",
        "numeric",
        "real",
        "smallint",
        "timestamp with time zone",
        "uuid",
        "uuid[]",
    }
)


class Column(NamedTuple):
    """One column of a table. `type` is PostgreSQL's name of it, without length."""

    table: str
    name: str
    type: str

    @property
    def could_hold_text(self) -> bool:
        return self.type not in NO_TEXT


async def columns(connection: Connection) -> list[Column]:
    """Every column of every table of ours."""
    return [Column(*row) for row in await connection.fetch(_COLUMNS)]
