"""Receipts: what was done, by which key, to which ids."""

from alembic import op

from migrations.guard import guard

revision = "0002"
down_revision = "0001"

_STATEMENTS = (
    """
    CREATE TABLE receipts (
        id uuid PRIMARY KEY,
        space_id bigint NOT NULL REFERENCES spaces (id),
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        actor text NOT NULL,
        action text NOT NULL,
        ids jsonb NOT NULL,
        counts jsonb NOT NULL,
        seal bigint,
        place integer
    )
    """,
    "CREATE INDEX receipts_unsealed ON receipts (space_id, at) WHERE seal IS NULL",
    "CREATE UNIQUE INDEX receipts_in_seals ON receipts (space_id, seal, place) WHERE seal IS NOT NULL",
    """
    CREATE TABLE seals (
        space_id bigint NOT NULL REFERENCES spaces (id),
        number bigint NOT NULL CHECK (number > 0),
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        size integer NOT NULL CHECK (size > 0),
        total bigint NOT NULL,
        leaves bytea NOT NULL,
        document jsonb NOT NULL,
        signature jsonb NOT NULL,
        expired boolean NOT NULL DEFAULT false,
        expiry jsonb,
        at timestamptz NOT NULL,
        PRIMARY KEY (space_id, number),
        UNIQUE (space_id, previous)
    )
    """,
    "CREATE INDEX receipts_by_time ON receipts (space_id, at, id)",
)


def upgrade() -> None:
    """Runs every statement in one transaction."""
    for statement in _STATEMENTS:
        op.execute(statement)
    guard("receipts", "seals")
