"""Webhooks: who is told what, and what was delivered."""

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Runs every statement in one transaction."""
