"""The erasure ledger: what was erased, where no backup of the data can undo it."""

from alembic import op

revision = "0002"
down_revision = "0001"

_STATEMENTS = (
    """
    CREATE TABLE ledger (
        position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id uuid NOT NULL UNIQUE,
        space_id bigint NOT NULL,
        kind text NOT NULL,
        target jsonb NOT NULL,
        reason_code text NOT NULL,
        actor text NOT NULL,
        accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        applied_at timestamptz
    )
    """,
    "CREATE INDEX ledger_unfinished ON ledger (position) WHERE applied_at IS NULL",
    "CREATE INDEX ledger_applied ON ledger (applied_at) WHERE applied_at IS NOT NULL",
    """
    CREATE TABLE suppressed (
        digest bytea NOT NULL,
        erasure uuid NOT NULL REFERENCES ledger (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        PRIMARY KEY (digest, erasure)
    )
    """,
    """
    CREATE TABLE suppressed_calls (
        digest bytea NOT NULL,
        erasure uuid NOT NULL REFERENCES ledger (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        PRIMARY KEY (digest, erasure)
    )
    """,
    "CREATE INDEX suppressed_calls_by_age ON suppressed_calls (at)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
