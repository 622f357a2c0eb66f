"""Erasures: what is being erased, how far it is, and the proof of it."""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Runs every statement in one transaction."""
