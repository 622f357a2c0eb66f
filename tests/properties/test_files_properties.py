"""Whatever JSON a file holds: chats with ids of their own come out of it, or a refusal by name."""

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from intake.files import Conversation, UnknownFormat, UnreadableFile, conversations
from intake.formats.tree import Node, main_branch

# The words that formats are known by, so that odd values stand where a format expects its own.
_KEYS = """
id messages conversations conversation turns traj mapping message author role name content
content_type parts text current_node parent create_time messageId parentMessageId isCreatedByUser children session_1 session_1_date_time
speaker_a speaker dia_id blip_caption history query response trace observations input output startTime
type GENERATION tool_calls function arguments tool_call_id from value data additional_kwargs contents candidates
choices created_at t recipient title result function_call functionResponse branches recursive sample_id at
"""
_key = st.sampled_from(_KEYS.split())
_word = st.sampled_from(
    ["user", "assistant", "tool", "human", "gpt", "system", "function_call", "GENERATION", "text", "x"]
)
_leaf = st.none() | st.booleans() | st.integers() | st.floats() | _word | st.text(max_size=8)
_json = st.recursive(
    _leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_key, inner, max_size=5), max_leaves=25
)
_message = st.fixed_dictionaries(
    {"role": _word, "content": _json}, optional={"id": _json, "tool_calls": _json, "at": _json}
)
_shapes = st.one_of(
    _json,
    st.lists(_message, max_size=5),
    st.fixed_dictionaries(
        {"messages": st.lists(_message | _json, max_size=5)}, optional={"id": _json, "history": _json}
    ),
    st.fixed_dictionaries({"mapping": st.dictionaries(_word, _json, max_size=5), "current_node": _word}),
    st.fixed_dictionaries(
        {"mapping": st.dictionaries(_word, st.fixed_dictionaries({"parent": _word, "message": _json}), max_size=5)}
    ),
    st.fixed_dictionaries({"conversation": st.fixed_dictionaries({"session_1": st.lists(_json, max_size=4)})}),
    st.dictionaries(
        _word, st.fixed_dictionaries({"history": st.dictionaries(_word, st.lists(_json, max_size=3))}), max_size=3
    ),
    st.fixed_dictionaries(
        {
            "trace": st.dictionaries(
                st.sampled_from(["id", "input", "output", "timestamp"]), _json | st.lists(_message)
            ),
            "observations": _json
            | st.lists(
                st.fixed_dictionaries({"type": _word, "input": _json | st.lists(_message), "output": _json}), max_size=3
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "messages": st.lists(
                st.fixed_dictionaries(
                    {
                        "messageId": _json,
                        "isCreatedByUser": _json,
                        "children": _json,
                        "parentMessageId": _json,
                        "text": _json,
                    }
                ),
                max_size=4,
            )
        }
    ),
)


def _read(content: str) -> list[Conversation] | None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        file.write(content)
        file.flush()
        try:
            return list(conversations(Path(file.name)))
        except (UnknownFormat, UnreadableFile):
            return None


@given(_shapes | st.lists(_shapes, max_size=3))
@example({"messages": [{"messageId": "a", "isCreatedByUser": True, "children": 5}]})
def test_any_json_gives_chats_or_a_refusal_by_name(document: Any) -> None:
    chats = _read(json.dumps(document))
    assert chats is None or _sound(chats)


@given(st.lists(_shapes, min_size=1, max_size=4))
def test_any_lines_of_json_give_chats_or_a_refusal_by_name(values: list[Any]) -> None:
    chats = _read("\n".join(map(json.dumps, values)))
    assert chats is None or _sound(chats)


@given(st.text(max_size=60))
def test_any_text_gives_chats_or_a_refusal_by_name(text: str) -> None:
    chats = _read(text)
    assert chats is None or _sound(chats)


def _sound(chats: list[Conversation]) -> bool:
    ids = [chat.id for chat in chats]
    assert len(set(ids)) == len(ids)
    for chat in chats:
        message_ids = [message.id for message in chat.messages]
        assert all(message_ids)
        assert len(set(message_ids)) == len(message_ids)
        assert [index for index, _ in chat.refused] == sorted({index for index, _ in chat.refused})
        for text in (chat.id, *map(str, message_ids), *(message.text for message in chat.messages)):
            assert "\x00" not in text
            text.encode()
    return True


@given(
    st.dictionaries(st.integers(0, 9).map(str), st.none() | st.integers(0, 12).map(str), max_size=10),
    st.none() | st.integers(0, 9).map(str),
)
def test_every_message_of_a_tree_is_on_the_branch_or_counted_as_left_out(
    parents: dict[str, str | None], current: str | None
) -> None:
    nodes = {key: Node(parent, {"key": key}, None) for key, parent in parents.items()}
    path, left_out = main_branch(nodes, current)
    keys = [message["key"] for message in path]
    assert len(keys) == len(set(keys))
    assert len(keys) + left_out == len(nodes)
    assert not nodes or keys
    for parent, child in pairwise(keys):
        assert parents[child] == parent
    if current in nodes:
        assert keys[-1] == current
