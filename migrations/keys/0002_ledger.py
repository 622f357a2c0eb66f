"""The erasure ledger: what was erased, where no backup of the data can undo it."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Runs every statement in one transaction."""
