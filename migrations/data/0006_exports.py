"""Exports: packages made for a person."""

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Runs every statement in one transaction."""
