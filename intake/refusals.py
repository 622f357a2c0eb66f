"""Why a message is not taken. Neither says a word of what the message says."""


class InvalidMessage(Exception):
    """A message that has not the shape of a chat message: where it goes wrong (`content[0].text`), and what is taken."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


class TooLarge(Exception):
    """More than a limit takes: the limit's name (`turn_bytes`) and its value."""

    def __init__(self, limit_name: str, limit: int) -> None:
        super().__init__(f"larger than {limit_name} = {limit}")
        self.limit_name = limit_name
        self.limit = limit
