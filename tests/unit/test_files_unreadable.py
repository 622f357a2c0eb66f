"""Files that are damaged, odd or large: a clear word where they go wrong, and nothing lost before that place."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from intake.documents import UnreadableFile, documents
from intake.files import Conversation, conversations

_MESSAGE = b'{"role": "user", "content": "hi"}'
_CHAT = b'{"messages": [' + _MESSAGE + b"]}"


def _read(tmp_path: Path, content: bytes) -> list[Conversation]:
    path = tmp_path / "chats"
    path.write_bytes(content)
    return list(conversations(path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"hello", "is not JSON, or ends too early (line 1, column 1"),
        (b"role,content\nuser,hi\n", "is not JSON"),
        (b"[", "ends too early (character 1"),
        (b"[" + _MESSAGE, "ends in the middle of its list (character 34)"),
        (b"[" + _MESSAGE + b",", "ends too early (character 35"),
        (b"[" + _MESSAGE + b" " + _MESSAGE + b"]", "no comma between two elements (character 35)"),
        (b"[" + _MESSAGE + b"] and more", "goes on after its end (character 36)"),
        (b'{"messages": [{"role": "us', "ends too early (line 1, column 24"),
        (_CHAT + b"\n" + b'{"messages": [\n', "line 2 is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'[{"role": "user", "content": "hi", "n": ' + b"9" * 5_000 + b"}]", "a number that is too long"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "a number that is too long"),
        ('[{"role": "user", "content": "é"}]'.encode("latin-1"), "is not text in UTF-8 or UTF-16"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "is not text"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_damaged_file_says_what_is_wrong_and_where(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile) as refusal:
        _read(tmp_path, content)
    assert reason in refusal.value.reason


def test_a_folder_or_no_file_at_all_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="is no regular file"):
        list(conversations(tmp_path))
    with pytest.raises(UnreadableFile, match="cannot be opened"):
        list(conversations(tmp_path / "absent.json"))


def test_what_stands_before_the_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(_CHAT + b"\n" + _CHAT + b"\n" + b"{oops\n")
    chats = conversations(path)
    assert [len(next(chats).messages) for _ in range(2)] == [1, 1]
    with pytest.raises(UnreadableFile, match="line 3"):
        next(chats)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_json_and_json_lines_are_read_in_every_encoding_of_json(tmp_path: Path, encoding: str, end: str) -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "Grüße, 世界 🌍"}]}, ensure_ascii=False)
    whole = _read(tmp_path, f"[{chat}]".encode(encoding))
    lines = _read(tmp_path, (chat + end + chat + end).encode(encoding))
    assert [message.text for chat in (*whole, *lines) for message in chat.messages] == ["Grüße, 世界 🌍"] * 3


def test_raw_control_characters_inside_strings_do_no_harm(tmp_path: Path) -> None:
    (chat,) = _read(tmp_path, b'[{"role": "user", "content": "a\tb\nc\x00d\x1be\\ud800"}]')
    assert chat.messages[0].text == "a\tb\nc\ufffdd\x1be\ufffd"


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_list_is_read_alike_whatever_part_of_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    values: list[Any] = [{"a": [1, {"b": 'é\\"]},'}]}, 12345, -1.5e10, "x" * 50, None, [], {}, True, 0]
    path = tmp_path / "values.json"
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")
    monkeypatch.setattr("intake.documents._CHUNK", size)
    assert list(documents(path)) == values


def test_a_long_list_is_not_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.write(b"[" + b",\n".join([_CHAT] * 40_000) + b"\n]")
    chats = conversations(path)
    first = next(chats)
    assert len(first.messages) == 1
    with path.open("r+b") as file:
        file.truncate(5 << 18)  # what was not read yet is not there any more, which a whole reading would not notice
    with pytest.raises(UnreadableFile):
        list(chats)


def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UnreadableFile, match="no regular file"):
            next(documents(path))


@pytest.mark.parametrize(
    "content", ["[" + "[" * 5_000, '{"a": "' + "b" * 5_000 + '"}', '{"a": 1}\n{"a": "' + "b" * 5_000]
)
def test_a_value_without_end_is_refused_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr("intake.documents._LONGEST_VALUE", 1_000)
    monkeypatch.setattr("intake.documents._CHUNK", 100)
    (tmp_path / "endless.json").write_text(content)
    with pytest.raises(UnreadableFile):
        list(documents(tmp_path / "endless.json"))
