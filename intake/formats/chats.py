"""Lists of messages, as most programs write them: OpenAI messages, ShareGPT, agent runs, dialogue data."""

from collections.abc import Mapping
from typing import Any

from intake.formats.draft import Draft, own_id
from intake.formats.instant import instant_in
from intake.formats.retelling import is_message, is_pair

_LISTS = (
    "messages",
    "conversations",
    "conversation",
    "turns",
    "traj",
    "trajectory",
    "dialogue",
    "dialog",
    "chat_messages",
    "chat",
    "history",
    "utterances",
)
_LOOKED_AT = 8


def drafts(document: Any) -> list[Draft] | None:
    """The one chat of a list of messages, or of an object that holds such a list; None for any other shape."""
    if isinstance(document, list):
        return [Draft(None, document)] if is_chat(document) else None
    if not isinstance(document, Mapping):
        return None
    if is_pair(document):
        return [Draft(own_id(document), [document], instant_in(document))]
    for key in _LISTS:
        told = document.get(key)
        if isinstance(told, list) and (is_chat(told) or not told):
            return [Draft(own_id(document), told, instant_in(document))]
    return None


def is_chat(told: list[Any]) -> bool:
    """Whether a list is one of messages, judged by its beginning: one odd message does not spoil the others."""
    return any(is_message(item) or is_pair(item) for item in told[:_LOOKED_AT])
