"""Names of months, days and numbers, several spellings to each, as the languages count them."""

from collections.abc import Sequence


def numbered(names: Sequence[str], first: int) -> dict[str, int]:
    """Each spelling with its number; the spellings of one number stand in one string, parted by spaces."""
    return {name: number for number, spellings in enumerate(names, first) for name in spellings.split()}
