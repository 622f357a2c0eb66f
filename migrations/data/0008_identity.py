"""Identity and policies: a space's rules of masking, and which subjects are one person."""

from alembic import op

from migrations.guard import guard

revision = "0008"
down_revision = "0007"

_STATEMENTS = (
    "ALTER TABLE spaces ADD COLUMN masking jsonb NOT NULL DEFAULT '{}'",
    # Logs stay each under its own subject: a link only says who is the same person.
    """
    CREATE TABLE links (
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        other_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        confirmed boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (space_id, subject_id, other_id),
        CHECK (subject_id < other_id)
    )
    """,
    "CREATE INDEX links_by_other ON links (other_id)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("links")
    op.execute("""
        CREATE POLICY unheld ON links AS RESTRICTIVE FOR DELETE USING (
            subject_id NOT IN (SELECT h.subject_id FROM holds h) AND other_id NOT IN (SELECT h.subject_id FROM holds h))
    """)
