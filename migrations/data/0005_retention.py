"""Retention: how long each data set is kept, what is held, and what is past its term."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Runs every statement in one transaction."""
