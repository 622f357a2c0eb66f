"""Identity: names that a space knows, policies, registered agents."""

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Runs every statement in one transaction."""
