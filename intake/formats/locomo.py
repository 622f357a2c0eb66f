"""LoCoMo: two friends over many sessions, each session with its time, shared pictures with a caption."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from intake.formats.draft import Draft, own_id
from intake.formats.instant import instant_of

_SESSION = re.compile(r"session_(\d{1,6})", re.ASCII)


def drafts(document: Any) -> list[Draft] | None:
    """One chat per session, in the order of the sessions; None for any other shape."""
    if not isinstance(document, Mapping):
        return None
    talk = document.get("conversation", document)
    if not isinstance(talk, Mapping):
        return None
    sessions = sorted((int(found[1]), key) for key in talk if (found := _SESSION.fullmatch(key)))
    if not any(isinstance(talk[key], list) for _, key in sessions):
        return None
    sample = own_id(document, ("sample_id", "id"))
    return [_session(talk, key, sample) for _, key in sessions if isinstance(talk[key], list)]


def _session(talk: Mapping[str, Any], key: str, sample: str | int | None) -> Draft:
    began = instant_of(talk.get(f"{key}_date_time"))
    messages = [_message(turn, talk, began, second) for second, turn in enumerate(talk[key])]
    return Draft(None if sample is None else f"{sample}/{key}", messages, began)


def _message(turn: Any, talk: Mapping[str, Any], began: datetime | None, second: int) -> Any:
    if not isinstance(turn, Mapping) or not isinstance(speaker := turn.get("speaker"), str):
        return turn
    message: dict[str, Any] = {"id": turn.get("dia_id"), "name": speaker, "content": _text(turn)}
    # Either may come first in a session, so that the file's own order of the two decides who plays the user.
    message["role"] = "user" if speaker == talk.get("speaker_a", speaker) else "assistant"
    if began is not None:
        message["at"] = (began + timedelta(seconds=second)).isoformat()
    return message


def _text(turn: Mapping[str, Any]) -> Any:
    caption = turn.get("blip_caption")
    if not isinstance(caption, str) or not caption:
        return turn.get("text")
    return f"{turn.get('text') or ''} [shared image: {caption}]".strip()
