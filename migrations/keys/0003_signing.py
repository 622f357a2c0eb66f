"""The deployment's signing key, wrapped."""

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Runs every statement in one transaction."""
