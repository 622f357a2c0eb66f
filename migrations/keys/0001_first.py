"""The key store's first schema: wrapped keys."""

from alembic import op

revision = "0001"
down_revision = None

_STATEMENTS = (
    """
    CREATE TABLE wrapped_keys (
        id uuid PRIMARY KEY,
        purpose text NOT NULL CHECK (purpose IN ('subject', 'space', 'suppression')),
        wrapped bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
