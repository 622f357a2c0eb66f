"""The backstop under the predicate that every query has: row-level security by space."""

from alembic import op


def guard(*tables: str) -> None:
    """A transaction sees the rows of the space that it is bound to, or, where a process says so, of every one.

    FORCE binds the tables' owner too.
    """
    for table in tables:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"""
            CREATE POLICY one_space ON {table} USING (
                space_id::text = (SELECT current_setting('afterturn.space', true))
                OR (SELECT current_setting('afterturn.space', true)) = 'every')
        """)
