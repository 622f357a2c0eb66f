"""Announcements: what subscribers are told about, written in the transaction that makes it true."""

from alembic import op

from migrations.guard import guard

revision = "0003"
down_revision = "0002"

_STATEMENTS = (
    """
    CREATE TABLE announcements (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        event text NOT NULL,
        ids jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX announcements_in_order ON announcements (space_id, created_at)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("announcements")
