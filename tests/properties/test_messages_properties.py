"""Whatever JSON a message is: it is read, or refused by name; never anything else."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intake.kept_text import kept
from intake.messages import InvalidMessage, Limits, Message, TooLarge, read

_LIMITS = Limits(turn_bytes=2_000, id_chars=40)

# Surrogates, NULs, controls, bidi marks, zero-width characters and astral planes, all at once.
_text = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.text(st.sampled_from("\x00\ud800\udfff\u202e\u200b\u001b\U0001f600a é"), max_size=20),
    st.sampled_from(["", "None", "data:image/png;base64,QUJD", "null", "user", "2026-03-02T10:15:00Z", "x" * 3_000]),
)
_scalar = st.none() | st.booleans() | st.integers() | st.floats() | _text
_json = st.recursive(
    _scalar, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4), max_leaves=12
)
_part = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["text", "image_url", "input_audio", "file", "refusal", "tool_use", "tool_result"])
        | _json
    },
    optional=dict.fromkeys(
        ("text", "refusal", "content", "input", "id", "name", "tool_use_id", "image_url", "function"), _json
    ),
)
_call = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": _text | _json, "arguments": _text | _json}) | _json},
    optional={"id": _json, "type": _json},
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer", "tool", "function"]) | _json},
    optional={
        "content": _text | st.lists(_text | _part | _json, max_size=5) | _json,
        "tool_calls": st.lists(_call | _json, max_size=3) | _json,
        "function_call": _call | _json,
        "audio": _json,
        "refusal": _json,
        "id": _json,
        "name": _json,
        "tool_call_id": _json,
        "at": st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()) | _json,
        "metadata": _json,
    },
)


def _read(raw: Any) -> Message | None:
    try:
        return read(raw, _LIMITS)
    except (InvalidMessage, TooLarge):
        return None


def _strings(message: Message) -> list[str]:
    calls = [text for call in message.tool_calls for text in (call.id, call.name, call.arguments)]
    return [message.text, *calls, *filter(None, (message.id, message.name, message.tool_call_id))]


@given(_message | _json)
def test_any_json_is_read_or_refused_by_name(raw: Any) -> None:
    message = _read(raw)
    if message is None:
        return
    assert message.said_at is None or message.said_at.utcoffset() is not None
    assert (
        sum(len(text.encode()) for text in _strings(message)[: 1 + 3 * len(message.tool_calls)]) <= _LIMITS.turn_bytes
    )
    for text in _strings(message):
        assert "\x00" not in text
        text.encode()  # no lone surrogate


@given(_message)
def test_reading_what_was_read_changes_nothing(raw: Any) -> None:
    message = _read(raw)
    if message is None:
        return
    again = {
        "role": message.role,
        "content": message.text,
        "at": None if message.said_at is None else message.said_at.isoformat(),
        "id": message.id,
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "tool_calls": [
            {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}} for call in message.tool_calls
        ],
    }
    assert read(json.loads(json.dumps(again)), _LIMITS) == message


@given(_message)
def test_the_same_message_is_read_the_same_way_twice(raw: Any) -> None:
    assert _read(raw) == _read(raw)


@given(_message)
def test_a_refusal_never_repeats_what_the_message_says(raw: Any) -> None:
    canary = "Zoraida-7Q2"
    raw = {key: _with_canary(value, canary) for key, value in raw.items()}
    assert canary not in _refusal(raw)


def _refusal(raw: Any) -> str:
    try:
        read(raw, _LIMITS)
    except (InvalidMessage, TooLarge) as refusal:
        return str(refusal)
    return ""


def _with_canary(value: Any, canary: str) -> Any:
    if isinstance(value, str):
        return value + canary
    if isinstance(value, list):
        return [_with_canary(inner, canary) for inner in value]
    return {key: _with_canary(inner, canary) for key, inner in value.items()} if isinstance(value, dict) else value


@given(st.text(st.characters(codec=None), max_size=300))
def test_text_without_bytes_in_it_keeps_every_storable_character(text: str) -> None:
    expected = "".join("\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in text)
    assert kept(text) == expected or "base64," in text


@given(st.binary(min_size=600, max_size=3_000), st.sampled_from(["", "look: ", '{"data":"', "\n"]))
def test_bytes_written_as_base64_are_never_kept(data: bytes, before: str) -> None:
    written = base64.b64encode(bytes(range(256)) + data).decode()
    assert written[:200] not in kept(f"{before}{written}")
    assert kept(f"{before}data:application/pdf;base64,{written}") == f"{before}[file]"


@pytest.mark.parametrize("depth", [10, 500, 5_000, 100_000])
def test_deep_nesting_is_refused_not_crashed_upon(depth: int) -> None:
    nested: Any = "x"
    for _ in range(depth):
        nested = [nested]
    with pytest.raises(InvalidMessage):
        read({"role": "user", "content": nested}, _LIMITS)
    arguments: Any = {"a": 1}
    for _ in range(depth):
        arguments = {"a": arguments}
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    assert _read({"role": "assistant", "content": None, "tool_calls": [call]}) is None or depth < 5_000
