"""Distillations: which conversation or task an agent wanted to learn from, what came of it, and whose turns were read.

A conversation's id is hashed under its person's key; whoever asks to learn from it knows the id alone. `known_as` is its
hash under the space's.
"""

from alembic import op

from migrations.guard import guard

revision = "0011"
down_revision = "0010"

_STATEMENTS = (
    "ALTER TABLE conversations ADD COLUMN known_as bytea",
    "CREATE INDEX conversations_known_as ON conversations (space_id, known_as) WHERE known_as IS NOT NULL",
    "CREATE INDEX turns_by_task ON turns (space_id, task_digest) WHERE task_digest IS NOT NULL",
    """
    CREATE TABLE distillations (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        agent text NOT NULL,
        vendor text,
        source text NOT NULL CONSTRAINT distillation_source CHECK (source IN ('conversation', 'task')),
        known_as bytea NOT NULL,
        evidence bytea NOT NULL,
        conversations bigint[] NOT NULL DEFAULT '{}',
        logs bigint[] NOT NULL DEFAULT '{}',
        proposer bytea NOT NULL,
        actor text NOT NULL,
        state text NOT NULL DEFAULT 'waiting' CONSTRAINT distillation_state CHECK (state IN ('waiting', 'proposed', 'nothing')),
        reason text CONSTRAINT distillation_reason CHECK (reason IN (
            'no_reusable_procedure', 'personal_data', 'unconfirmed_identity_link', 'no_turns')),
        proposal uuid,
        asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        finished_at timestamptz
    )
    """,
    """
    CREATE UNIQUE INDEX distillations_once ON distillations (space_id, agent, source, evidence, vendor) NULLS NOT DISTINCT
    """,
    "CREATE INDEX distillations_of_conversations ON distillations USING gin (conversations)",
    "CREATE INDEX distillations_of_logs ON distillations USING gin (logs)",
    "CREATE INDEX distillations_finished ON distillations (space_id, finished_at) WHERE finished_at IS NOT NULL",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("distillations")
