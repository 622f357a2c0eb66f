"""Chats out of files that other programs wrote, each with ids that stay the same when the file comes again."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from intake.documents import UnreadableFile, documents
from intake.formats.draft import Draft, own_id
from intake.formats.recognition import TAKEN, drafts_in
from intake.formats.retelling import Cast, is_message, retell
from intake.kept_text import kept_id
from intake.messages import InvalidMessage, Limits, Message, TooLarge, read

__all__ = ["Conversation", "UnknownFormat", "UnreadableFile", "conversations"]

_OPENING = 4  # messages: chats that begin alike for so long are one chat, at different ages
_CHAT_IDS = ("conversation_id", "conversationId", "session_id", "sessionId", "thread_id", "chat_id")


class UnknownFormat(Exception):
    """A file that is JSON, and no chat in a shape that is known; `reason` names the shapes that are taken."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Conversation:
    """One chat. Each message has an id; `speakers` are the names in it, in the order in which they speak.

    `refused` holds the index of each message that is not taken, and why (never what it says). `left_out` counts the
    messages on branches that the chat did not go on with.
    """

    id: str
    messages: list[Message]
    speakers: tuple[str, ...] = ()
    refused: list[tuple[int, str]] = field(default_factory=list)
    left_out: int = 0


def conversations(path: Path, limits: Limits | None = None) -> Iterator[Conversation]:
    """The chats of one file in order, read as they are asked for.

    Raises UnknownFormat before the first chat; UnreadableFile before the first, or where the file goes wrong.
    """
    seen: Counter[str] = Counter()
    for draft in _drafts(documents(path)):
        yield _conversation(draft, limits or Limits(), seen)


def _drafts(values: Iterator[Any]) -> Iterator[Draft]:
    beginning = list(islice(values, 1))
    values = chain(beginning, values)
    if any(isinstance(first, str) or is_message(first) for first in beginning):
        yield from _by_chat(values)
        return
    known = False
    for value in values:
        found = _recognised(value)
        if found is None and not known:
            raise UnknownFormat(f"holds no chat in a shape that is known. Taken are {TAKEN}.")
        known = True
        yield from found or [Draft(None, [value])]


def _by_chat(messages: Iterable[Any]) -> list[Draft]:
    """Single messages are one chat, unless they say which they belong to."""
    chats: dict[str | int | None, list[Any]] = {}
    for message in messages:
        chat_id = own_id(message, _CHAT_IDS) if isinstance(message, Mapping) else None
        chats.setdefault(chat_id, []).append(message)
    return [Draft(chat_id, chat) for chat_id, chat in chats.items()]


def _recognised(value: Any) -> list[Draft] | None:
    try:
        return drafts_in(value)
    except RecursionError:
        raise UnreadableFile("is nested too deeply") from None


def _conversation(draft: Draft, limits: Limits, seen: Counter[str]) -> Conversation:
    messages, refused = _messages(draft, limits)
    name = _conversation_id(draft, messages, limits)
    seen[name] += 1
    return Conversation(
        id=name if seen[name] == 1 else f"{name}#{seen[name]}",
        messages=messages,
        speakers=tuple(dict.fromkeys(message.name for message in messages if message.name and _is_person(message))),
        refused=refused,
        left_out=draft.left_out,
    )


def _is_person(message: Message) -> bool:
    return message.role in ("user", "assistant")


def _messages(draft: Draft, limits: Limits) -> tuple[list[Message], list[tuple[int, str]]]:
    messages: list[Message] = []
    refused: list[tuple[int, str]] = []
    cast, seen, at = Cast(), Counter[str](), draft.started_at
    for index, told in enumerate(draft.messages):
        try:
            for message in [read(each, limits) for each in retell(told, cast)]:
                # A message without a time was said after the one before it.
                at = message.said_at or at
                messages.append(_identified(replace(message, said_at=at), index, seen))
        except (InvalidMessage, TooLarge) as why:
            refused.append((index, str(why)))
    return _dated(messages), refused


def _dated(messages: list[Message]) -> list[Message]:
    """What comes before the first message that has a time was said by then."""
    first = next((message.said_at for message in messages if message.said_at is not None), None)
    return [message if message.said_at is not None else replace(message, said_at=first) for message in messages]


def _identified(message: Message, index: int, seen: Counter[str]) -> Message:
    """With the file's own id, or one made of the place and the content: the same again when the file comes again, and
    another where another text stands in that place."""
    name = message.id or f"{index}-{_digest([message])}"
    seen[name] += 1
    return replace(message, id=name if seen[name] == 1 else f"{name}#{seen[name]}")


def _conversation_id(draft: Draft, messages: list[Message], limits: Limits) -> str:
    opening = _digest(messages[:_OPENING])
    if draft.id is None:
        return opening
    name = kept_id(str(draft.id))
    if len(name) > limits.id_chars // 2:
        return _sha(name)
    # A bare number says which chat of its file it is, and other files count from the same one.
    return f"{name}-{opening}" if name.isdigit() else name


def _digest(messages: Iterable[Message]) -> str:
    return _sha(json.dumps([[message.role, message.name, message.text, _calls(message)] for message in messages]))


def _calls(message: Message) -> list[list[str]]:
    return [[call.name, call.arguments] for call in message.tool_calls]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
