"""Webhooks: who is told what, and what was delivered."""

from alembic import op

from migrations.guard import guard

revision = "0007"
down_revision = "0006"

# A delivery is born with its announcement. An endpoint that failed waits as a whole, until `resume_at`; what it would not
# take waits alone, until `due_at`.
_STATEMENTS = (
    """
    CREATE TABLE webhooks (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        name text NOT NULL,
        url bytea NOT NULL,
        secrets bytea NOT NULL,
        events text[] NOT NULL,
        disabled boolean NOT NULL DEFAULT false,
        resume_at timestamptz NOT NULL DEFAULT now(),
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    "CREATE UNIQUE INDEX webhooks_by_name ON webhooks (space_id, name)",
    """
    CREATE TABLE deliveries (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        webhook_id uuid NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
        announcement_id uuid NOT NULL REFERENCES announcements (id) ON DELETE CASCADE,
        state text NOT NULL DEFAULT 'waiting' CONSTRAINT delivery_state
            CHECK (state IN ('waiting', 'delivered', 'parked')),
        attempts integer NOT NULL DEFAULT 0,
        error text,
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        due_at timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz
    )
    """,
    "CREATE INDEX deliveries_waiting ON deliveries (webhook_id, id) WHERE state = 'waiting'",
    "CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, state, id)",
    "CREATE INDEX deliveries_of_announcement ON deliveries (announcement_id)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("webhooks", "deliveries")
