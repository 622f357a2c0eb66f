"""Which master keys wrap what is here: a proof by each, so that a wrong one is refused before it wraps anything."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Runs every statement in one transaction."""
    op.execute("""
    CREATE TABLE master_keys (
        fingerprint bytea PRIMARY KEY,
        proof bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """)
