"""Chats out of files: each known shape, in order, with ids that stay, and clear words for what is not taken."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from intake.files import Conversation, UnknownFormat, conversations
from intake.messages import Limits, Message
from memory.turn import ToolCall

_CHATS = Path(__file__).parents[1] / "fixtures" / "chats"


def _read(name: str) -> list[Conversation]:
    return list(conversations(_CHATS / name))


def _told(tmp_path: Path, document: Any) -> list[Conversation]:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return list(conversations(path))


def _lines(chat: Conversation) -> list[tuple[str, str]]:
    return [(str(message.role), message.text) for message in chat.messages]


def _by_id(chat: Conversation, message_id: str) -> Message:
    return next(message for message in chat.messages if message.id == message_id)


@pytest.mark.parametrize("path", sorted(_CHATS.iterdir()), ids=lambda path: path.name)
def test_a_file_read_twice_gives_the_same_chats_under_ids_of_their_own(path: Path) -> None:
    chats = list(conversations(path))
    assert chats
    assert list(conversations(path)) == chats
    assert len({chat.id for chat in chats}) == len(chats)
    for chat in chats:
        assert not chat.refused
        ids = [message.id for message in chat.messages]
        assert all(ids)
        assert len(set(ids)) == len(ids)


def test_openai_messages_keep_their_ids_times_calls_and_results() -> None:
    (chat,) = _read("openai_messages.json")
    assert chat.id == "case-81"
    assert [role for role, _ in _lines(chat)] == ["system", "user", "assistant", "tool", "assistant"]
    asked = _by_id(chat, "m-1")
    assert asked.text == "Is this the room I booked?\n[image]"
    assert asked.said_at == datetime(2025, 6, 3, 16, 20, tzinfo=UTC)
    assert asked.said_at.utcoffset() == timedelta(hours=2)
    assert chat.messages[2].tool_calls == (ToolCall("call_9", "booking", '{"guest":"Ilse"}'),)
    assert chat.messages[3].tool_call_id == "call_9"


def test_a_message_without_a_time_was_said_after_the_one_before_it() -> None:
    (chat,) = _read("openai_messages.json")
    (at,) = {message.said_at for message in chat.messages}  # also that of the one before the first time
    assert at is not None


def test_each_line_of_a_fine_tuning_file_is_a_chat() -> None:
    first, second = _read("fine_tuning.jsonl")
    assert _lines(first)[1:] == [("user", "Où est la gare ?"), ("assistant", "Tout droit.")]
    assert _lines(second)[1:] == [("user", "¿Y el puerto?"), ("assistant", "A la izquierda.")]


def test_sharegpt_speakers_become_roles_and_written_calls_become_calls() -> None:
    first, second = _read("sharegpt.json")
    assert (first.id, second.id) == ("chat_a", "chat_b")
    assert _lines(first) == [("user", "Which tide is low tomorrow?"), ("assistant", "The one at 6:40.")]
    assert [role for role, _ in _lines(second)] == ["system", "user", "assistant", "tool", "assistant"]
    assert second.messages[2].tool_calls == (ToolCall("ferry", "ferry", '{"to": "Texel"}'),)


def test_a_chatgpt_export_follows_the_branch_where_the_chat_stands() -> None:
    (chat,) = _read("chatgpt_export.json")
    assert chat.id == "5d0c3f9e-1111-4222-8333-444455556666"
    assert [message.id for message in chat.messages] == ["u1", "a1", "t1", "a2"]
    assert chat.left_out == 2
    assert chat.messages[1].tool_calls == (ToolCall("a1", "browser", 'search("Ghent in May")'),)
    assert (chat.messages[2].text, chat.messages[2].tool_call_id) == ("Ghent\nMild, 12 to 18 degrees", "a1")
    assert chat.messages[3].text == "Mild weather awaits her.\n[image]"
    assert chat.messages[0].said_at == datetime(2025, 4, 30, 8, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("current", [None, "gone", 5])
def test_without_a_pointer_the_branch_spoken_last_is_the_chat(tmp_path: Path, current: Any) -> None:
    (exported,) = json.loads((_CHATS / "chatgpt_export.json").read_text(encoding="utf-8"))
    (chat,) = _told(tmp_path, [exported | {"current_node": current}])
    assert [message.id for message in chat.messages] == ["u1", "a1", "t1", "a2"]


def test_a_tree_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["again"]}}
    circle = {key: {"parent": up, "message": {**message, "id": key}} for key, up in (("a", "b"), ("b", "a"))}
    (chat,) = _told(tmp_path, [{"id": "x", "current_node": "a", "mapping": circle}])
    assert len(chat.messages) == 2


def test_a_librechat_tree_follows_the_branch_spoken_last() -> None:
    (chat,) = _read("librechat_tree.json")
    assert [message.id for message in chat.messages] == ["l1", "l3", "l4"]
    assert _lines(chat) == [("user", "Name a boat."), ("assistant", "Curlew."), ("user", "Better.")]
    assert chat.left_out == 1
    assert chat.messages[2].said_at == chat.messages[1].said_at


def test_locomo_sessions_are_chats_in_their_order_with_times_names_and_captions() -> None:
    chats = _read("locomo.json")
    assert [chat.id for chat in chats] == ["talk-3/session_1", "talk-3/session_2", "talk-3/session_10"]
    first, second, _ = chats
    assert first.speakers == ("Ada", "Bruno")
    assert [(message.id, message.name, str(message.role)) for message in first.messages] == [
        ("D1:1", "Ada", "user"),
        ("D1:2", "Bruno", "assistant"),
    ]
    assert first.messages[0].text == "Look what I made! [shared image: a blue clay jug]"
    assert first.messages[1].said_at == datetime(2024, 5, 8, 13, 56, 1, tzinfo=UTC)
    # Bruno begins this one, and plays the same part as before.
    assert (second.messages[0].role, second.messages[0].said_at) == (
        "assistant",
        datetime(2024, 5, 9, 0, 5, tzinfo=UTC),
    )


def test_memorybank_days_are_chats_of_a_person_who_is_named() -> None:
    chats = _read("memorybank.json")
    assert [chat.id for chat in chats] == ["Lena/2023-04-27", "Lena/2023-04-29", "陈岚/2023-04-27"]
    assert [chat.speakers for chat in chats] == [("Lena",), ("Lena",), ("陈岚",)]
    assert _lines(chats[0])[2:] == [("user", "Nine years."), ("assistant", "Impressive.")]
    assert chats[0].messages[3].said_at == datetime(2023, 4, 27, 0, 0, 3, tzinfo=UTC)


def test_runs_that_share_a_number_stay_apart() -> None:
    first, second = _read("agent_runs.json")
    assert first.id != second.id
    assert [role for role, _ in _lines(second)] == ["system", "user", "assistant", "tool"]
    assert second.messages[2].text == ""
    assert second.messages[3].tool_call_id == second.messages[2].tool_calls[0].id


def test_an_object_of_chats_by_their_ids_is_read_as_chats() -> None:
    chats = _read("crosswoz.json")
    assert [chat.id.split("-")[0] for chat in chats] == ["4411", "4412"]
    assert _lines(chats[0]) == [("user", "推荐一家餐馆"), ("assistant", "推荐您去春来饭店")]


def test_a_chatbot_ui_export_holds_its_chats_in_its_history() -> None:
    assert [(chat.id, len(chat.messages)) for chat in _read("chatbotui.json")] == [("h-1", 2), ("h-2", 1)]


def test_a_list_of_strings_is_one_chat_of_a_user() -> None:
    (chat,) = _read("strings.json")
    assert [text for _, text in _lines(chat)] == ["", "undefined", "Ω≈ç√∫", "Robert'); DROP TABLE students;--"]


def test_a_trace_tells_its_thread_once_however_often_its_calls_repeat_it() -> None:
    (chat,) = _read("trace.json")
    assert chat.id == "tr-1"
    assert [role for role, _ in _lines(chat)] == ["user", "assistant", "tool", "assistant"]
    assert chat.messages[1].tool_calls == (ToolCall("w1", "weather", '{"city": "Oslo"}'),)
    assert chat.messages[3].text == "It is 4 degrees."


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("What is a buoy?", "A float."),
        ('"What is a buoy?"', '"A float."'),
        ({"message": "What is a buoy?", "session": 1}, {"content": "A float.", "metrics": {}}),
        (
            {"contents": "What is a buoy?"},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "A float."}]}}]},
        ),
        (
            [{"role": "user", "parts": [{"type": "text", "content": "What is a buoy?"}]}],
            [{"role": "assistant", "parts": [{"type": "text", "content": "A float."}]}],
        ),
        (
            [{"role": "user", "content": "What is a buoy?"}],
            {"output": [{"type": "reasoning"}, {"type": "message", "role": "assistant", "content": "A float."}]},
        ),
    ],
)
def test_a_trace_in_any_framework_s_words_gives_question_and_answer(tmp_path: Path, asked: Any, answered: Any) -> None:
    (chat,) = _told(tmp_path, {"trace": {"id": "t", "input": asked, "output": answered}, "observations": []})
    assert _lines(chat) == [("user", "What is a buoy?"), ("assistant", "A float.")]


def test_several_tool_results_in_one_message_become_a_turn_each(tmp_path: Path) -> None:
    results = [{"type": "tool_result", "tool_use_id": key, "content": f"got {key}"} for key in ("a", "b")]
    (chat,) = _told(tmp_path, [{"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}])
    assert _lines(chat) == [("tool", "got a"), ("tool", "got b"), ("user", "And now?")]
    assert [message.tool_call_id for message in chat.messages] == ["a", "b", None]


def test_gemini_parts_are_text_calls_and_results(tmp_path: Path) -> None:
    chats = _told(
        tmp_path,
        [
            {"role": "user", "parts": [{"text": "hi"}, {"inline_data": {"mime_type": "image/png", "data": "iVBO"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "greet", "args": {"who": "you"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "greet", "response": {"said": "hello"}}}]},
        ],
    )
    assert _lines(chats[0]) == [("user", "hi\n[image]"), ("assistant", ""), ("tool", '{"said": "hello"}')]
    assert chats[0].messages[1].tool_calls == (ToolCall("greet", "greet", '{"who": "you"}'),)
    assert chats[0].messages[2].tool_call_id == "greet"


def test_named_speakers_play_the_user_and_those_who_answer(tmp_path: Path) -> None:
    lines = [("Ann", "Tea?"), ("Ben", "Yes."), ("Cid", "No."), ("Ann", "Good.")]
    (chat,) = _told(tmp_path, [{"speaker": speaker, "text": text} for speaker, text in lines])
    assert chat.speakers == ("Ann", "Ben", "Cid")
    assert [str(message.role) for message in chat.messages] == ["user", "assistant", "assistant", "user"]


def test_single_messages_that_name_their_chat_are_sorted_into_chats(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    said = [("a", "user", "one"), ("b", "user", "two"), ("a", "assistant", "three")]
    lines = [json.dumps({"conversation_id": chat, "role": role, "content": text}) for chat, role, text in said]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [(chat.id, len(chat.messages)) for chat in conversations(path)] == [("a", 2), ("b", 1)]


def test_a_chat_that_has_grown_keeps_its_id_and_the_ids_of_its_messages(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": f"line {n}"} for n in range(8)]
    (before,) = _told(tmp_path, {"messages": messages[:5]})
    (after,) = _told(tmp_path, {"messages": messages})
    assert after.id == before.id
    assert after.messages[:5] == before.messages


def test_two_files_that_count_their_chats_from_nought_do_not_mix(tmp_path: Path) -> None:
    (one,) = _told(tmp_path, {"task_id": 0, "messages": [{"role": "user", "content": "hello"}]})
    (other,) = _told(tmp_path, {"task_id": 0, "messages": [{"role": "user", "content": "goodbye"}]})
    assert one.id != other.id


def test_equal_chats_and_equal_ids_in_one_file_stay_apart(tmp_path: Path) -> None:
    chat = {"messages": [{"id": "m", "role": "user", "content": "hi"}, {"id": "m", "role": "user", "content": "ho"}]}
    first, second = _told(tmp_path, [chat, chat])
    assert second.id == f"{first.id}#2"
    assert [message.id for message in first.messages] == ["m", "m#2"]


def test_a_number_and_its_digits_are_two_ids_and_an_odd_id_is_its_own(tmp_path: Path) -> None:
    told = [{"id": one, "role": "user", "content": "hi"} for one in (7, "7", "a\x00", "a\ufffd")]
    (chat,) = _told(tmp_path, [{"messages": told}])
    ids = [message.id for message in chat.messages]
    assert ids[:2] == ["7", "7#2"]
    assert len(set(ids)) == 4


def test_a_message_that_is_not_taken_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    messages: list[Any] = [
        {"role": "user", "content": "fine"},
        {"role": "user", "content": "x" * 101},
        {"role": "narrator", "content": "meanwhile"},
        {"role": "user", "content": 5},
        {"role": "user"},
        17,
        {"role": "assistant", "content": "fine too"},
    ]
    path.write_text(json.dumps(messages), encoding="utf-8")
    (chat,) = conversations(path, Limits(turn_bytes=100))
    assert [text for _, text in _lines(chat)] == ["fine", "fine too"]
    assert chat.refused == [
        (1, "larger than turn_bytes = 100"),
        (2, "role: names no part in a chat"),
        (3, "content: takes a string, null or a list of parts"),
        (4, "content: is missing"),
        (5, "takes an object or a string"),
    ]


def test_an_odd_element_among_chats_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    first, odd, last = _told(tmp_path, [chat, {"version": 3}, {"id": "z", **chat}])
    assert (len(first.messages), len(odd.messages), len(last.messages)) == (1, 0, 1)
    assert odd.refused == [(0, "role: names no part in a chat")]


@pytest.mark.parametrize(
    "document",
    [
        None,
        42,
        True,
        {},
        {"products": [{"id": 1, "title": "Mascara"}]},
        [[]],
        [[1, 2]],
        {"Emily": ["Which book?"]},
        {"trace": {}},
    ],
)
def test_json_that_is_no_chat_is_refused_with_what_is_taken(tmp_path: Path, document: Any) -> None:
    with pytest.raises(UnknownFormat, match="ShareGPT") as refusal:
        _told(tmp_path, document)
    assert "LoCoMo" in refusal.value.reason


def test_an_empty_list_holds_no_chats(tmp_path: Path) -> None:
    assert _told(tmp_path, []) == []
    assert _told(tmp_path, [{"id": "a", "messages": []}]) == [Conversation("a", [])]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2024-05-08T13:56:00+02:00", datetime(2024, 5, 8, 11, 56, tzinfo=UTC)),
        ("2024-05-08 13:56:00", datetime(2024, 5, 8, 13, 56, tzinfo=UTC)),
        ("2024-05-08", datetime(2024, 5, 8, tzinfo=UTC)),
        (1715176560, datetime(2024, 5, 8, 13, 56, tzinfo=UTC)),
        (1715176560500, datetime(2024, 5, 8, 13, 56, 0, 500_000, tzinfo=UTC)),
        ("1715176560", datetime(2024, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:00 pm on 8 May, 2024", datetime(2024, 5, 8, 12, tzinfo=UTC)),
        ("8 May 2024", datetime(2024, 5, 8, tzinfo=UTC)),
        ("31 June 2024", None),
        ("8 Smarch 2024", None),
        ("soon", None),
        (-5, None),
        (1e300, None),
        (float("nan"), None),
        (True, None),
        ([], None),
        ("9" * 5_000, None),
    ],
    ids=str,
)
def test_times_are_read_as_files_write_them(tmp_path: Path, at: Any, expected: datetime | None) -> None:
    (chat,) = _told(tmp_path, [{"role": "user", "content": "hi", "created_at": at}])
    assert chat.messages[0].said_at == expected
