"""How much work one text may cost, in units and not in time, so that the same text always ends the same way."""

FLOOR = 16_000  # units that any text may use; a unit is about a microsecond
PER_CHARACTER = 0.95


class Exhausted(Exception):
    """The text asks for more work than its length allows: whoever catches this masks the whole of it."""


class Budget:
    """Counts down; `spend` raises `Exhausted` below zero."""

    __slots__ = ("left",)

    def __init__(self, characters: int) -> None:
        self.left = int(FLOOR + characters * PER_CHARACTER)

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise Exhausted
