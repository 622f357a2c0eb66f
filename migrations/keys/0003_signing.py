"""The deployment's signing key, wrapped; those that it had before stay, to check what they signed."""

from alembic import op

revision = "0003"
down_revision = "0002"

_STATEMENTS = (
    """
    CREATE TABLE signing_keys (
        id uuid PRIMARY KEY,
        number integer GENERATED ALWAYS AS IDENTITY,
        wrapped bytea NOT NULL,
        public bytea NOT NULL,
        handover jsonb,
        created_at timestamptz NOT NULL DEFAULT now(),
        retired_at timestamptz
    )
    """,
    "CREATE UNIQUE INDEX signing_keys_current ON signing_keys ((true)) WHERE retired_at IS NULL",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
