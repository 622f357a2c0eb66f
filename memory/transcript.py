"""Turns as lines of a prompt: two or three tokens around each, and no way for its text to look like another's.

Every line starts with a mark of ours and text never starts a line (see `fence`), so what a turn says stays inside it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from memory.batches import Part
from memory.fence import one_line
from memory.turn import Role, Turn

_SAME_TIME = timedelta(minutes=15)  # turns nearer than this share one time line
_NAME = 60  # characters
_NO_NAME = re.compile(r"[:<>＜＞|｜]")  # behind a mark of ours these could end the name, or make a template's token
_MARKS = {Role.USER: ">", Role.ASSISTANT: "<", Role.TOOL: "="}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def spoken(turns: Sequence[Turn]) -> list[Turn]:
    """The turns that are shown, so that a turn's alias is its place here, from 1. Operators' own words are no turns."""
    return [turn for turn in turns if turn.role in _MARKS]


def told(turns: Sequence[Turn]) -> Iterator[str]:
    """Lines for `spoken` turns. A time, a conversation and a name stand only where they are news.

    A name holds for its mark until another one or the next time line: most chats have one speaker a side.
    """
    several = len({turn.conversation for turn in turns}) > 1
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    before: Turn | None = None
    clock: datetime | None = None
    for alias, turn in enumerate(turns, 1):
        number = numbers.setdefault(turn.conversation, len(numbers) + 1)
        if before is None or turn.conversation != before.conversation:
            names.clear()
            yield from [f"# Conversation {number}"] if several else []
        time = _time(turn.said_at, clock)
        if time:
            clock = turn.said_at
            names.clear()
            yield time
        yield from _lines(alias, turn, names)
        before = turn


def _time(said_at: datetime, clock: datetime | None) -> str:
    """`said_at` as far as it differs from the time that was told last, or nothing."""
    offset = said_at.strftime("%z")[:5]
    if clock is None or clock.strftime("%z")[:5] != offset:
        return f"@{said_at.date().isoformat()} {_WEEKDAYS[said_at.weekday()]} {said_at:%H:%M} {offset}"
    if clock.date() != said_at.date():
        return f"@{said_at.date().isoformat()} {_WEEKDAYS[said_at.weekday()]} {said_at:%H:%M}"
    return f"@{said_at:%H:%M}" if abs(said_at - clock) > _SAME_TIME else ""


def _lines(alias: int, turn: Turn, names: dict[str, str]) -> Iterator[str]:
    number = f"{alias}({turn.number}/{turn.of})" if isinstance(turn, Part) and turn.of > 1 else str(alias)
    if isinstance(turn, Part) and turn.lead:
        yield f"{alias}~ {one_line(turn.lead)}"
    if turn.text.strip() or not turn.tool_calls:
        mark = _MARKS[turn.role]
        yield f"{number}{mark}{_name(turn, mark, names)} {one_line(turn.text)}"
    for call in turn.tool_calls:
        yield f"{number}! {one_line(call.name)} {one_line(call.arguments)}"


def _name(turn: Turn, mark: str, names: dict[str, str]) -> str:
    """The speaker and a colon where the mark stood for another; the colon is the only one, so the name ends there."""
    name = " ".join(_NO_NAME.sub(" ", one_line(turn.name or "", " ")).split())[:_NAME].strip()
    if names.get(mark, "") == name:
        return ""
    names[mark] = name
    return f"{name}:"
