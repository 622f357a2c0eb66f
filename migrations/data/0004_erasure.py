"""Erasures: what is being erased, how far it is, and the proof of it."""

from alembic import op

from migrations.guard import guard

revision = "0004"
down_revision = "0003"

_STATEMENTS = (
    """
    CREATE TABLE erasures (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        kind text NOT NULL CHECK (kind IN ('subject', 'conversation', 'agent')),
        target jsonb NOT NULL,
        reason_code text NOT NULL,
        actor text NOT NULL,
        state text NOT NULL DEFAULT 'accepted'
            CONSTRAINT erasure_state CHECK (state IN ('accepted', 'running', 'verifying', 'completed', 'incomplete')),
        progress jsonb NOT NULL DEFAULT '{}',
        counts jsonb NOT NULL DEFAULT '{}',
        unconfirmed jsonb NOT NULL DEFAULT '0',
        certificate jsonb,
        receipt uuid,
        accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        finished_at timestamptz,
        CHECK (state <> 'completed' OR certificate IS NOT NULL)
    )
    """,
    "CREATE INDEX erasures_under_way ON erasures (accepted_at) WHERE state <> 'completed'",
    "CREATE INDEX erasures_in_order ON erasures (space_id, accepted_at)",
    # A conversation that was erased alone may begin anew: what is from before is told by this, and refused.
    "CREATE INDEX erasures_of_conversations ON erasures (space_id, (target->>'digest')) WHERE kind = 'conversation'",
    "ALTER TABLE conversations ADD COLUMN reborn_at timestamptz, ADD COLUMN reborn_by uuid",
    # By it an erasure finds what the model cost over the work that it deletes.
    "CREATE INDEX model_usage_by_work ON model_usage (work_id) WHERE work_id <> 0",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("erasures")
