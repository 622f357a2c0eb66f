"""What people are called: names that a space registered for them."""

from alembic import op

from migrations.guard import guard

revision = "0009"
down_revision = "0008"

# `head` is of a name's first four words, by which it is looked up in any text; `digest` is of all of them.
_STATEMENTS = (
    """
    CREATE TABLE names (
        space_id bigint NOT NULL REFERENCES spaces (id),
        subject_id uuid NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
        digest bytea NOT NULL,
        head bytea NOT NULL,
        words smallint NOT NULL,
        sealed bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (subject_id, digest)
    )
    """,
    "CREATE INDEX names_by_head ON names (space_id, head)",
    # When what a person is called last changed: every process looks for that, and forgets what it knew.
    "ALTER TABLE subjects ADD COLUMN called_at timestamptz",
    "CREATE INDEX subjects_called ON subjects (called_at) WHERE called_at IS NOT NULL",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("names")
    op.execute("""
        CREATE POLICY unheld ON names AS RESTRICTIVE FOR DELETE USING (NOT EXISTS (
            SELECT FROM holds h WHERE h.space_id = names.space_id AND h.subject_id = names.subject_id))
    """)
