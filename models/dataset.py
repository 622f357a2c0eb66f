"""Data sets: the one place that says how each is counted, exported, expired and erased, and what its columns hold.

Sweeper and eraser delete through the same method, so the two cannot drift apart. A test walks the live schema: a table
that no data set claims, or a column that can hold text and is not described, fails it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from models.database import Connection
from privacy.sealing import SealingKey


class Holds(StrEnum):
    """What a column that could hold text does hold."""

    SEALED = "sealed"  # text about a person, under that person's key
    DIGEST = "digest"  # a keyed hash
    ID = "id"  # an opaque or declared id, never one that a person chose
    CODE = "code"  # one of a closed list, or a declared name of an agent, model, policy
    NUMBERS = "numbers"  # ids, counts and codes in a document
    TRADE = "trade"  # what an agent learned about its work: readable, and about no person


@dataclass(frozen=True, slots=True)
class Target:
    """Whom or what to count, export or erase, by ids that were fixed once; every part is within `space`.

    `subjects` are a person's whole closure. `conversations` without `subjects`: an erasure of conversations alone.
    `before`: an agent's rows that were made until then, for an agent goes on; None: all of them.
    """

    space: int
    subjects: tuple[UUID, ...] = ()
    logs: tuple[int, ...] = ()
    conversations: tuple[int, ...] = ()
    agent: str | None = None
    before: datetime | None = None


Keys = Mapping[UUID, SealingKey]
Row = Mapping[str, Any]
Tables = Mapping[str, Mapping[str, Holds]]
"""By table: each column of type text, bytea, json or an array of them, and what it holds."""


class DataSet(Protocol):
    """One kind of data. Connections are bound to the target's space (or every one) and inside a transaction."""

    @property
    def name(self) -> str: ...

    @property
    def tables(self) -> Tables: ...

    async def count(self, connection: Connection, target: Target) -> int:
        """Rows that the target has, expired ones included."""
        ...

    async def erase(self, connection: Connection, target: Target, most: int) -> int:
        """Deletes up to `most` rows of the target; answers how many. 0: nothing is left."""
        ...

    def export(self, connection: Connection, target: Target, keys: Keys) -> AsyncIterator[Row]:
        """The target's live rows, opened, as JSON-ready members, in a stable order."""
        ...

    async def expire(self, connection: Connection, space: int, most: int) -> int:
        """Deletes up to `most` rows of the space that are past their term and not held; answers how many."""
        ...


@runtime_checkable
class Filed(DataSet, Protocol):
    """A data set with files beside its rows. The eraser removes a folder's files before the rows that speak of them.

    Whoever writes a file looks at the fence afterwards, and removes it where its subject is gone.
    """

    def folders(self, target: Target) -> Sequence[str]:
        """The folders in the package store in which every file of the target lies, those that no row names included."""
        ...


Place = tuple[int, int]
"""How far a walk has come: which of the target's logs, and after which number in it."""


@runtime_checkable
class Walked(DataSet, Protocol):
    """A data set so large that its eraser must not pass over what it has deleted already."""

    async def walk(self, connection: Connection, target: Target, place: Place, most: int) -> tuple[int, Place | None]:
        """Deletes up to `most` rows past a place, (0, 0) at first; answers how many, and the next place, None at the end."""
        ...


Spot = tuple[int, *tuple[Any, ...]]
"""How far a sweep has come: by which way of finding rows, and after which of them. Only its data set reads it."""

LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)
"""Before any row."""


@runtime_checkable
class Swept(DataSet, Protocol):
    """A data set so large that its sweeper must not pass over what it has deleted already, or what is held."""

    async def sweep(self, connection: Connection, space: int, spot: Spot | None, most: int) -> tuple[int, Spot | None]:
        """As `expire`, from a spot on, None at first; answers how many, and the next spot, None at the end."""
        ...


async def see_expired(connection: Connection) -> None:
    """This transaction sees rows past their term too: for those that count, erase and sweep, never for a read."""
    await connection.execute("SELECT set_config('afterturn.expired', 'seen', true)")
