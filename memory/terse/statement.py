"""A statement: what one clause or sentence of a turn says."""

from dataclasses import dataclass

from memory.observation import Interval


@dataclass(frozen=True, slots=True)
class Statement:
    """A note, the sentence that it comes from, the days that it names, and whom its "he" or "she" may mean.

    `continues`: it speaks of "it" or "them", so that it says little without the statement before.
    """

    text: str
    source: str
    days: Interval | None = None
    about: str | None = None
    continues: bool = False
