"""One chat message: what is kept of it, what is refused, and where the refusal points."""

from datetime import timedelta
from typing import Any

import pytest

from intake.messages import InvalidMessage, Limits, Message, TooLarge, read
from memory.turn import Role, ToolCall

_LIMITS = Limits()


def _read(**raw: Any) -> Message:
    return read({"role": "user", "content": "hi"} | raw, _LIMITS)


def _refused(**raw: Any) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as refusal:
        _read(**raw)
    return refusal.value


def test_a_plain_message_is_kept_whole() -> None:
    message = _read(id="m-1", content="I moved to Porto.", name="Rui", at="2026-03-02T10:15:00+01:00")
    assert (message.role, message.text, message.id, message.name) == (Role.USER, "I moved to Porto.", "m-1", "Rui")
    assert message.said_at is not None
    assert message.said_at.utcoffset() == timedelta(hours=1)
    assert (message.tool_calls, message.tool_call_id) == ((), None)


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer", "tool"])
def test_each_role_of_the_api_is_taken(role: str) -> None:
    assert _read(role=role).role == role


@pytest.mark.parametrize("role", ["human", "gpt", "model", "USER", "", None, 5, True, ["user"], {"role": "user"}])
def test_a_role_in_other_words_is_refused_at_its_path(role: Any) -> None:
    assert _refused(role=role).path == "role"


@pytest.mark.parametrize("raw", [None, "hi", 5, [], [{"role": "user"}], True])
def test_what_is_no_object_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidMessage):
        read(raw, _LIMITS)


def test_what_else_a_message_carries_is_kept_out() -> None:
    message = _read(metadata={"mood": "blue"}, annotations=[1], reasoning="hm", weight=0, prefix=True)
    assert message == _read()


def test_null_content_is_empty_text_and_never_the_word_none() -> None:
    assert _read(role="assistant", content=None).text == ""
    assert _read(role="tool", content=None, tool_call_id="c").text == ""


def test_a_message_without_any_content_is_refused() -> None:
    with pytest.raises(InvalidMessage) as refusal:
        read({"role": "user", "text": "hi"}, _LIMITS)
    assert (refusal.value.path, refusal.value.why) == ("content", "is missing")


@pytest.mark.parametrize(
    "content", [True, False, 0, 1.5, float("nan"), float("inf"), pytest.param(10**5_000, id="endless"), {"text": "hi"}]
)
def test_content_of_another_type_is_refused(content: Any) -> None:
    assert _refused(content=content).path == "content"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        (None, "content[1]"),
        (5, "content[1]"),
        (["text"], "content[1]"),
        ({"type": 5, "text": "hi"}, "content[1].type"),
        ({"type": "text", "text": ["hi"]}, "content[1].text"),
        ({"type": "text", "text": 5}, "content[1].text"),
        ({"type": "tool_result", "content": [["deep"]]}, "content[1].content[0]"),
        ({"type": "tool_use", "id": "t", "input": {}}, "content[1].function.name"),
    ],
)
def test_a_broken_part_is_refused_at_its_path(part: Any, path: str) -> None:
    assert _refused(content=["fine", part]).path == path


def test_parts_keep_their_text_and_leave_a_marker_for_bytes() -> None:
    content = [
        {"type": "text", "text": "What is on these?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_audio", "input_audio": {"data": "//t0xA", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0x", "filename": "taxes.pdf"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
        {"type": "document_url", "document_url": "https://example.org/a.pdf"},
        {"image_url": "https://example.org/b.png"},
        {"type": "text", "text": None, "image_url": None},
        {"type": "thinking", "thinking": "he wants a summary"},
        {"type": "refusal", "refusal": "I cannot look at faces."},
        {"type": "hologram", "data": [1]},
        "And this?",
    ]
    assert _read(content=content).text.split("\n") == [
        "What is on these?", "[image]", "[audio]", "[file]", "[video]", "[file]", "[image]", "I cannot look at faces.",
        "And this?",
    ]  # fmt: skip


def test_text_wrapped_with_its_annotations_is_unwrapped() -> None:
    content = [{"type": "text", "text": {"value": "See page 4.", "annotations": []}}]
    assert _read(role="assistant", content=content).text == "See page 4."


def test_a_refusal_or_a_transcript_beside_null_content_is_the_text() -> None:
    assert _read(role="assistant", content=None, refusal="I would rather not.").text == "I would rather not."
    spoken = {"id": "a", "data": "UklGRg", "transcript": "Good evening."}
    assert _read(role="assistant", content=None, audio=spoken).text == "[audio] Good evening."
    assert _read(role="assistant", content=None, audio={"id": "a"}).text == "[audio]"


def test_tool_calls_are_kept_with_their_arguments_as_they_are() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "é",}'}}]
    message = _read(role="assistant", content=None, tool_calls=calls)
    assert message.tool_calls == (ToolCall("c1", "find", '{"q": "é",}'),)


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        ({"id": "c", "function": {"name": "f"}}, ToolCall("c", "f", "{}")),
        ({"id": "c", "function": {"name": "f", "arguments": {"é": [1]}}}, ToolCall("c", "f", '{"é": [1]}')),
        (
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
            ToolCall("c", "sql", "SELECT 1"),
        ),
        ({"id": "c", "name": "f", "args": {"a": 1}}, ToolCall("c", "f", '{"a": 1}')),
        ({"id": 7, "function": {"name": "f", "arguments": ""}}, ToolCall("7", "f", "")),
        ({"function": {"name": "f", "arguments": "1"}}, ToolCall("f", "f", "1")),
    ],
)
def test_calls_as_seen_in_the_wild_are_read(call: Any, kept: ToolCall) -> None:
    assert _read(role="assistant", content="", tool_calls=[call]).tool_calls == (kept,)


@pytest.mark.parametrize(
    ("calls", "path"),
    [
        ("call", "tool_calls"),
        ({"id": "c"}, "tool_calls"),
        ([None], "tool_calls[0]"),
        ([{"id": "c", "function": "f"}], "tool_calls[0].function"),
        ([{"id": "c", "function": {"name": ""}}], "tool_calls[0].function.name"),
        ([{"id": True, "function": {"name": "f"}}], "tool_calls[0].id"),
        ([{"id": "c" * 513, "function": {"name": "f"}}], "tool_calls[0].id"),
        (
            [{"id": "c", "function": {"name": "f", "arguments": {"x": float("nan")}}}],
            "tool_calls[0].function.arguments",
        ),
    ],
)
def test_a_broken_call_is_refused_at_its_path(calls: Any, path: str) -> None:
    assert _refused(role="assistant", tool_calls=calls).path == path


def test_the_legacy_function_call_and_its_answer_find_each_other() -> None:
    asked = _read(role="assistant", content=None, function_call={"name": "weather", "arguments": '{"city": "Oslo"}'})
    answer = _read(role="function", name="weather", content="4 degrees")
    assert asked.tool_calls == (ToolCall("weather", "weather", '{"city": "Oslo"}'),)
    assert (answer.role, answer.name, answer.tool_call_id) == (Role.TOOL, "weather", "weather")


def test_an_empty_legacy_call_beside_content_is_none() -> None:
    message = _read(role="assistant", content="Hello", function_call={"name": "", "arguments": ""}, tool_calls=None)
    assert message.tool_calls == ()


def test_a_tool_use_part_is_a_call_and_its_result_a_tool_turn() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"id": 4}}
    asked = _read(role="assistant", content=[{"type": "text", "text": "One moment."}, use])
    assert (asked.text, asked.tool_calls) == ("One moment.", (ToolCall("t1", "lookup", '{"id": 4}'),))
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "It is Ann."}]}
    answer = _read(role="user", content=[result])
    assert (answer.role, answer.text, answer.tool_call_id) == (Role.TOOL, "It is Ann.", "t1")


def test_a_tool_result_never_passes_for_the_words_of_the_user_beside_it() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "The user is called Mallory."}
    message = _read(role="user", content=[result, {"type": "text", "text": "Thanks."}])
    assert (message.role, message.text) == (Role.USER, "Thanks.\n[tool result]")


def test_calls_of_anyone_but_the_assistant_are_kept_out() -> None:
    calls = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    assert _read(role="user", tool_calls=calls).tool_calls == ()
    assert _read(role="user", tool_call_id="c").tool_call_id is None


def test_nuls_and_lone_surrogates_are_replaced_in_every_string() -> None:
    bad, good = "a\x00b\ud800c\udfff", "a\ufffdb\ufffdc\ufffd"
    call = {"id": bad, "function": {"name": bad, "arguments": bad}}
    message = _read(role="assistant", content=bad, id=bad, name=bad, tool_calls=[call])
    assert (message.text, message.name) == (good, good)
    assert message.id is not None
    assert message.id.startswith(f"{good}#")
    assert message.tool_calls == (ToolCall(good, good, good),)
    assert _read(role="tool", content=[bad], tool_call_id=bad).tool_call_id == good


@pytest.mark.parametrize(
    "text",
    ["\x01\x1b[31m\x7f\x85", "\u202edrow\u202c \u2066x\u2069", "z͑ͫ̓a̴l͂g̛o", "👩‍👩‍👧\U0010ffff", "\u200b\ufeff", "\r\n\t "],
)
def test_control_bidi_and_odd_characters_stay(text: str) -> None:
    assert _read(content=text).text == text


@pytest.mark.parametrize("given", ["17", "+351 912 345 678", "a\ufffd", "\u202e", None])
def test_an_id_is_kept_as_it_was_sent(given: str | None) -> None:
    assert _read(id=given).id == given


def test_ids_that_differ_in_what_is_replaced_stay_apart() -> None:
    sent = ["a\x00", "a\ufffd", "a\ud800", "a\udfff", "a\x00\x00", "a\ufffd\x00", "a"]
    assert len({_read(id=one).id for one in sent}) == len(sent)
    assert _read(id="a\x00") == _read(id="a\x00")


@pytest.mark.parametrize(
    "given",
    [
        "",
        7,
        True,
        1.5,
        float("nan"),
        [],
        {},
        pytest.param("x" * 513, id="wordy"),
        pytest.param(10**600, id="long"),
        pytest.param(10**5_000, id="endless"),
    ],
)
def test_any_other_id_is_refused(given: Any) -> None:
    assert _refused(id=given).path == "id"


@pytest.mark.parametrize(
    "at",
    [
        "2026-03-02T10:15:00Z",
        "2026-03-02t10:15:00z",
        "2026-03-02T10:15:00.123456789+05:30",
        "2026-03-02 10:15:00-00:00",
    ],
)
def test_times_with_an_offset_are_taken(at: str) -> None:
    said_at = _read(at=at).said_at
    assert said_at is not None
    assert said_at.utcoffset() is not None
    assert (said_at.hour, said_at.minute) == (10, 15)


@pytest.mark.parametrize(
    "at",
    [
        "2016-12-31T23:59:60Z",
        "2016-12-31t23:59:60.75z",
        "1990-12-31T15:59:60-08:00",
        "2017-01-01T05:29:60+05:30",
        "2015-06-30 23:59:60+00:00",
    ],
)
def test_a_leap_second_is_the_end_of_its_minute(at: str) -> None:
    said_at = _read(at=at).said_at
    assert said_at is not None
    assert (said_at.second, said_at.microsecond) == (59, 999_999)
    assert said_at.isoformat()[:16] == at[:16].upper().replace(" ", "T")


@pytest.mark.parametrize(
    "at",
    [
        "2016-12-31T23:59:61Z",
        "2016-12-30T23:59:60Z",
        "2016-12-31T22:59:60Z",
        "2016-12-31T23:59:60+01:00",
        "0001-01-01T00:59:60+14:00",
        "2016-12-31T23:59:60",
        "2026-03-02T10:15:00",
        "2026-03-02",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "1899-12-31T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-03-02T25:00:00Z",
        "2026-03-02T10:15:00+24:00",
        "2026-03-02T10:15:00+01:00:30",
        "yesterday",
        "",
        "\x00",
        "\ud800",
        pytest.param("9" * 100_000, id="nines"),
        1_770_000_000,
        1e308,
        float("nan"),
        True,
        [],
        {},
    ],
)
def test_times_that_are_naive_or_broken_or_far_off_are_refused(at: Any) -> None:
    assert _refused(at=at).path == "at"


@pytest.mark.parametrize("name", [5, True, ["x"], {}, pytest.param("n" * 513, id="wordy")])
def test_a_name_that_is_no_short_text_is_refused(name: Any) -> None:
    assert _refused(name=name).path == "name"


def test_a_turn_may_fill_its_limit_to_the_byte() -> None:
    limit = Limits(turn_bytes=100)
    assert read({"role": "user", "content": "é" * 50}, limit).text == "é" * 50
    with pytest.raises(TooLarge) as refusal:
        read({"role": "user", "content": "é" * 50 + "x"}, limit)
    assert (refusal.value.limit_name, refusal.value.limit) == ("turn_bytes", 100)


def test_the_arguments_of_tool_calls_count_into_the_limit() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "y" * 60}}
    raw = {"role": "assistant", "content": "x" * 39, "tool_calls": [call]}
    with pytest.raises(TooLarge):
        read(raw, Limits(turn_bytes=100))
    assert read(raw, Limits(turn_bytes=101)).text == "x" * 39


def test_the_bytes_of_parts_do_not_count_because_they_are_not_kept() -> None:
    url = "data:image/png;base64," + "A" * 100_000
    raw = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    assert read(raw, Limits(turn_bytes=100)).text == "[image]"
