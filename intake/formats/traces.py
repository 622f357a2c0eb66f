"""Langfuse's traces of agent frameworks: what models were asked and what they answered, as messages where they are some."""

import json
from collections.abc import Mapping
from typing import Any

from intake.formats.draft import Draft, own_id
from intake.formats.instant import instant_of
from intake.formats.retelling import Cast, is_message, retell
from intake.messages import InvalidMessage, Limits, TooLarge, read

_ASKED = ("message", "input", "question", "query", "prompt")
_ANSWERED = ("content", "output", "answer", "response", "text")
_ENCODINGS = 3  # JSON inside JSON inside JSON occurs


def drafts(document: Any) -> list[Draft] | None:
    """The chats of one trace: its own where it tells one, else one for each thread that its model calls tell.
    None for any other shape, and for a trace that tells no chat."""
    if not isinstance(document, Mapping) or not isinstance(document.get("trace"), Mapping):
        return None
    trace = document["trace"]
    observations = document.get("observations")
    calls = [call for call in observations if isinstance(call, Mapping)] if isinstance(observations, list) else []
    calls.sort(key=lambda call: str(call.get("startTime")))
    generations = [call for call in calls if call.get("type") == "GENERATION"]
    threads = _threads([trace]) or _threads(generations) or _threads(calls) or _plain_exchange(trace)
    chat_id = own_id(trace, ("id",))
    began = instant_of(trace.get("timestamp"))
    return [
        Draft(f"{chat_id}/{number}" if chat_id and number > 1 else chat_id, thread, began)
        for number, thread in enumerate(threads, 1)
    ] or None


def _threads(calls: list[Mapping[str, Any]]) -> list[list[Any]]:
    """Each thread once, at its longest: a call repeats what the calls before it said."""
    threads: list[tuple[list[Any], list[Any]]] = []
    for call in calls:
        if not (asked := _asked(_decoded(call.get("input")))):
            continue
        thread = _joined(asked, _answered(_decoded(call.get("output"))))
        gist = _gist(thread)
        if not any(_within(gist, known) for _, known in threads):
            threads = [(longest, known) for longest, known in threads if not _within(known, gist)]
            threads.append((_timed(thread, call), gist))
    return [thread for thread, _ in threads]


def _decoded(value: Any) -> Any:
    for _ in range(_ENCODINGS):
        if not isinstance(value, str) or value[:1] not in ('"', "{", "["):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _asked(asked: Any) -> list[Any]:
    if isinstance(asked, Mapping):
        if isinstance(text := asked.get("contents"), str):
            return [{"role": "user", "content": text}]
        asked = asked.get("messages") or asked.get("contents")
    if not isinstance(asked, list) or not all(map(is_message, asked)):
        return []
    return [message for message in asked if not _defines_a_tool(message)]


def _defines_a_tool(message: Mapping[str, Any]) -> bool:
    """Some frameworks list the tools a model may call among the messages."""
    content = message.get("content")
    function = content.get("function") if isinstance(content, Mapping) else None
    return isinstance(function, Mapping) and "arguments" not in function


def _answered(answer: Any) -> list[Any]:
    if isinstance(answer, str):
        return [{"role": "assistant", "content": answer}] if answer else []
    if isinstance(answer, list):
        return [message for message in answer if is_message(message)]
    if not isinstance(answer, Mapping):
        return []
    return [answer] if is_message(answer) else _answered(_wrapped_answer(answer))


def _wrapped_answer(answer: Mapping[str, Any]) -> Any:
    for key in ("messages", "output"):
        if isinstance(answer.get(key), list):
            return answer[key]
    for key in ("choices", "candidates"):
        if isinstance(answer.get(key), list) and answer[key]:
            return answer[key][0]
    wrapped = answer.get("message") or answer.get("content")
    return wrapped if isinstance(wrapped, Mapping) else None


def _joined(asked: list[Any], answered: list[Any]) -> list[Any]:
    return answered if _within(_gist(asked), _gist(answered)) else asked + answered


def _within(shorter: list[Any], longer: list[Any]) -> bool:
    """Whether all of `shorter` occurs in `longer`, in its order: calls made side by side are told one after the other."""
    rest = iter(longer)
    return all(said in rest for said in shorter)


def _gist(thread: list[Any]) -> list[Any]:
    """What each message says, in whichever words its record tells it."""
    return [_said(told) for told in thread]


def _said(told: Any) -> Any:
    try:
        messages = [read(each, Limits()) for each in retell(told, Cast())]
    except (InvalidMessage, TooLarge):
        return told
    return [(message.role, message.text, [call.name for call in message.tool_calls]) for message in messages]


def _timed(thread: list[Any], call: Mapping[str, Any]) -> list[Any]:
    began = instant_of(call.get("startTime") or call.get("timestamp"))
    return thread if began is None else [{"at": began.isoformat(), **message} for message in thread]


def _plain_exchange(trace: Mapping[str, Any]) -> list[list[Any]]:
    asked = _plain(_decoded(trace.get("input")), _ASKED)
    answered = _plain(_decoded(trace.get("output")), _ANSWERED)
    if not asked or not answered:
        return []
    return [[{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]]


def _plain(value: Any, keys: tuple[str, ...]) -> str | None:
    if isinstance(value, Mapping):
        value = next((value[key] for key in keys if isinstance(value.get(key), str)), None)
    return value if isinstance(value, str) else None
