"""What stands inside the sealed columns: turns and observations, packed for sealing and opened for thinking."""

import json
from datetime import date, datetime, timedelta, timezone

from pydantic_core import from_json, to_json

from memory.observation import Draft, Interval, Kind, Line, Priority, Rewritten
from memory.turn import Role, ToolCall, Turn
from models.observation import SEALED_OBSERVATION, Observation
from models.turn import SEALED_TURN, StoredTurn
from privacy.sealing import Sealed, SealingKey


def seal_turn(
    key: SealingKey,
    text: str,
    *,
    message_id: str | None = None,
    name: str | None = None,
    tool_calls: tuple[ToolCall, ...] = (),
    tool_call_id: str | None = None,
) -> Sealed:
    """A turn's masked text, and what else the chat gave with it, under its owner's key."""
    content: dict[str, object] = {"text": text}
    if message_id is not None:
        content["id"] = message_id
    if name is not None:
        content["name"] = name
    if tool_calls:
        content["calls"] = [[call.id, call.name, call.arguments] for call in tool_calls]
    if tool_call_id is not None:
        content["call"] = tool_call_id
    return key.seal(to_json(content).decode(), SEALED_TURN)


def open_turn(row: StoredTurn, key: SealingKey) -> Turn:
    """A turn as it was said (masked), at its own offset."""
    content = from_json(key.open(row.sealed, SEALED_TURN))
    return Turn(
        id=row.id,
        conversation=row.conversation_id,
        role=Role(row.role),
        text=content["text"],
        said_at=at_offset(row.said_at, row.said_offset),
        tokens=row.tokens,
        name=content.get("name"),
        tool_calls=tuple(ToolCall(*call) for call in content.get("calls", ())),
        tool_call_id=content.get("call"),
    )


def message_id(sealed: Sealed, key: SealingKey) -> str | None:
    """What the chat called a turn, where it called it anything."""
    named: str | None = from_json(key.open(sealed, SEALED_TURN)).get("id")
    return named


def seal_line(key: SealingKey, line: Draft | Rewritten) -> Sealed:
    """A line's text and the dates that it speaks about (a birthday is personal) under its subject's key."""
    content: dict[str, object] = {"text": line.text}
    if line.refers_to is not None:
        content["refers_to"] = [line.refers_to.start.isoformat(), line.refers_to.end.isoformat()]
    return key.seal(json.dumps(content, ensure_ascii=False), SEALED_OBSERVATION)


def open_line(row: Observation, key: SealingKey) -> Line:
    """A line of the log."""
    content = json.loads(key.open(row.sealed, SEALED_OBSERVATION))
    dates = content.get("refers_to")
    return Line(
        id=row.id,
        text=content["text"],
        kind=Kind(row.kind),
        priority=Priority(row.priority),
        observed_at=at_offset(row.observed_at, row.observed_offset),
        tokens=row.tokens,
        evidence=tuple(row.evidence),
        refers_to=Interval(date.fromisoformat(dates[0]), date.fromisoformat(dates[1])) if dates else None,
        supersedes=row.supersedes,
    )


def line_digest(key: SealingKey, normalised: str, refers_to: Interval | None) -> bytes:
    """What makes two lines the same: what they say, and of which days. A fact of two periods stays two facts."""
    days = f"{refers_to.start}/{refers_to.end}" if refers_to else ""
    return key.digest(f"{days}\0{normalised}", SEALED_OBSERVATION)


def offset_minutes(moment: datetime) -> int:
    """Minutes east of UTC, for the offset columns."""
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // 60)


def at_offset(moment: datetime, minutes: int) -> datetime:
    """An instant at the offset in which it was spoken."""
    return moment.astimezone(timezone(timedelta(minutes=minutes)))
