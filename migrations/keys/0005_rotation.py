"""Each wrapped key names its master key, which cannot go while one is left: PostgreSQL itself strands nothing."""

from alembic import op

revision = "0005"
down_revision = "0004"

_TABLES = ("wrapped_keys", "signing_keys")


def upgrade() -> None:
    """Runs every statement in one transaction. A retired signing key has no secret half, so it names none."""
    for table in _TABLES:
        op.execute(f"""
        ALTER TABLE {table} ADD COLUMN master bytea
            GENERATED ALWAYS AS (nullif(substring(wrapped FROM 2 FOR 4), ''::bytea)) STORED
            REFERENCES master_keys (fingerprint)
        """)
