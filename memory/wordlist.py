"""Lists of words, as people write them: one after the other."""


def listed(text: str) -> tuple[str, ...]:
    """The words of `text` in its order, parted by any white space."""
    return tuple(text.split())
