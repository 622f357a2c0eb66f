"""When PostgreSQL or Redis is away: what that looks like, and saying it once."""

import asyncpg
import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError

DATABASE = (
    OSError,  # refused, reset, no such socket, too slow
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutting down, starting up
    asyncpg.InsufficientResourcesError,  # too many connections, disk full
)
REDIS = (OSError, RedisError)

_FROM_OUTSIDE = (
    ConnectionError,
    RedisConnectionError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)

_log = structlog.get_logger()


def caused(error: BaseException) -> bool:
    """Whether a job failed because a store was away, and not for a reason of its own."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or caused(error.__cause__ or error.orig or Exception())
    return isinstance(error, _FROM_OUTSIDE)


class Outage:
    """Says that a store went away, once, and that it came back."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.lasting = False

    def began(self, error: BaseException) -> None:
        if not self.lasting:
            _log.warning("store_went_away", store=self._store, error=type(error).__name__)
        self.lasting = True

    def ended(self) -> None:
        if self.lasting:
            _log.info("store_came_back", store=self._store)
        self.lasting = False
