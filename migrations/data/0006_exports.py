"""Exports: packages made for a person."""

from alembic import op

from migrations.guard import guard

revision = "0006"
down_revision = "0005"

# `subject_id` is no foreign key: an erasure's fence must not wait for a package to be removed.
_STATEMENTS = (
    """
    CREATE TABLE exports (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL,
        asked bytea,
        actor text NOT NULL,
        state text NOT NULL CONSTRAINT export_state
            CHECK (state IN ('accepted', 'running', 'ready', 'expired', 'failed', 'cancelled')),
        work_id bigint,
        file text,
        size bigint,
        counts jsonb NOT NULL,
        as_of timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz,
        expires_at timestamptz
    )
    """,
    "CREATE UNIQUE INDEX exports_once ON exports (space_id, asked)",
    "CREATE INDEX exports_by_subject ON exports (subject_id)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("exports")
    op.execute("""
        CREATE POLICY unheld ON exports AS RESTRICTIVE FOR DELETE USING (
            subject_id NOT IN (SELECT h.subject_id FROM holds h))
    """)
