"""What people are called, whose the agents are, and which turns wait for a model to look for names."""

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
    # Owners are subjects, so that an erasure of one leaves nothing that leads to them; the agent stays its vendor's.
    """
    CREATE TABLE agents (
        space_id bigint NOT NULL REFERENCES spaces (id),
        agent text NOT NULL,
        vendor text NOT NULL,
        owner_subject uuid REFERENCES subjects (id) ON DELETE SET NULL,
        employee_subject uuid REFERENCES subjects (id) ON DELETE SET NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (space_id, agent)
    )
    """,
    "CREATE INDEX agents_by_owner ON agents (owner_subject) WHERE owner_subject IS NOT NULL",
    "CREATE INDEX agents_by_employee ON agents (employee_subject) WHERE employee_subject IS NOT NULL",
    """
    CREATE TABLE pseudonyms (
        subject_id uuid PRIMARY KEY REFERENCES subjects (id) ON DELETE CASCADE,
        space_id bigint NOT NULL REFERENCES spaces (id),
        version bigint NOT NULL,
        sealed bytea NOT NULL
    )
    """,
    # What only a part of masking has looked at so far: it waits for the models layer.
    "ALTER TABLE turns ADD COLUMN unmasked boolean NOT NULL DEFAULT false",
    "CREATE INDEX turns_unmasked ON turns (log_id, seq) WHERE unmasked",
    "CREATE INDEX api_keys_of_agent ON api_keys (space_id, agent) WHERE agent IS NOT NULL",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("names", "agents", "pseudonyms")
    for table in ("names", "pseudonyms"):
        op.execute(f"""
            CREATE POLICY unheld ON {table} AS RESTRICTIVE FOR DELETE USING (NOT EXISTS (
                SELECT FROM holds h WHERE h.space_id = {table}.space_id AND h.subject_id = {table}.subject_id))
        """)
