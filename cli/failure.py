"""Why a command ends without its answer: one line for standard error, and an exit code."""


class Ended(Exception):
    """A command ended early; the message is one line that says why and, where there is something, what to do."""

    exit_code = 1


class Failed(Ended):
    """It could not be done."""


class WrongUse(Ended):
    """It was asked for in a way that cannot be done."""

    exit_code = 2
