"""How long is a server waited for that took a connection and then says nothing?"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a connection to be made, for one to come free, for one statement. None: without limit.

    A statement that runs out of time is cancelled at the server; where that is not answered either, its connection is
    given up after as long again.
    """

    to_connect: float = 5.0
    for_connection: float = 10.0
    for_statement: float | None = 10.0

    @classmethod
    def of(cls, statement: timedelta) -> "Patience":
        """The usual one, with so much for a statement."""
        return cls(for_statement=statement.total_seconds())


USUAL = Patience()
UNHURRIED = Patience(for_connection=60.0, for_statement=None)

AWAY = (
    OSError,  # refused, reset, no such socket, too slow
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutting down, starting up
    asyncpg.InsufficientResourcesError,  # too many connections, disk full
    asyncpg.InternalClientError,  # what the driver says of a connection that breaks under a statement
)
"""What the driver raises while a server is not there, or not yet."""

_Prepared = Callable[[Any], Awaitable[None]]


def pooled(
    url: str,
    first: int,
    most: int,
    patience: Patience,
    *,
    init: _Prepared | None = None,
    reset: _Prepared | None = None,
) -> "PatientPool":
    """A pool of up to `most` connections, to be entered; it opens `first` of them at once, the others when needed.

    Whoever finds none free waits as long as `patience` says.
    """
    pool = PatientPool(
        url,
        init_size=first,
        min_size=0,  # a floor would be restored with a traceback for each try while the server is away
        max_size=most,
        max_queries=50_000,
        max_inactive_connection_lifetime=300.0,
        loop=None,
        connection_class=asyncpg.Connection,
        record_class=asyncpg.Record,
        init=init,
        reset=reset,
        timeout=patience.to_connect,
        command_timeout=patience.for_statement,
    )
    pool.for_connection = patience.for_connection
    return pool


class PatientPool(asyncpg.Pool):  # type: ignore[misc]  # asyncpg ships no types
    """asyncpg's, whose own `acquire` waits for ever unless each caller says otherwise."""

    for_connection: float

    def acquire(self, *, timeout: float | None = None) -> Any:
        # A time limit costs a task of its own: where a connection is idle nobody has to wait.
        limit = timeout or (None if self.get_idle_size() else self.for_connection)
        return super().acquire(timeout=limit)
