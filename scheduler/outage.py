"""When PostgreSQL or Redis is away: what that looks like, and saying it once."""

import errno

import asyncpg
import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError

from models.patience import AWAY

DATABASE = AWAY
REDIS = (OSError, RedisError)

_FROM_OUTSIDE = (
    ConnectionError,
    TimeoutError,  # a store's: a model that is too slow is an outcome, and raises nothing
    RedisConnectionError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InternalClientError,
)

_log = structlog.get_logger()


def caused(error: BaseException) -> bool:
    """Whether a job failed because a store was away, and not for a reason of its own."""
    if isinstance(error, DBAPIError):
        # Around the driver's own error stands another one, where a connection was not even had.
        inner = error.orig and (error.orig.__cause__ or error.orig)
        return error.connection_invalidated or (inner is not None and caused(inner))
    return isinstance(error, _FROM_OUTSIDE) or _no_socket(error)


def _no_socket(error: BaseException) -> bool:
    # A server on a Unix socket takes it away when it goes; a file that is missing has a name.
    return isinstance(error, FileNotFoundError) and error.errno == errno.ENOENT and error.filename is None


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
