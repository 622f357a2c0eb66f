"""What comes out of Redis is a bell, or it is not understood: it never breaks the worker and is never quoted."""

import json
import pickle

import pytest

from jobs import wire
from jobs.wire import NotUnderstood
from models.claim import Rung


def test_what_is_wrapped_is_unwrapped() -> None:
    assert wire.unwrap(wire.wrap(2**62, 2**40, 1), {"work"}) == Rung(2**62, 2**40)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff",
        b"null",
        b"[]",
        b'{"f": "work"}',
        pickle.dumps({"f": "work", "a": [1, 2], "k": {}, "t": None, "et": 1}),
        b'{"f": "work", "a": [1, 2], "k": {}, "t": null, "et": 1}' + b" " * 1000,
        b"[" * 900,
    ],
)
def test_what_is_no_arq_job_is_not_understood(content: bytes) -> None:
    with pytest.raises(NotUnderstood):
        wire.unwrap(content, {"work"})


@pytest.mark.parametrize(
    "arguments", [[], [1], [1, 2, 3], ["1", 2], [1.0, 2], [True, 2], [-1, 2], [2**63, 2], {"a": 1}]
)
def test_arguments_that_are_no_ids_are_not_understood(arguments: object) -> None:
    content = json.dumps({"f": "work", "a": arguments, "k": {}, "t": None, "et": 1}).encode()
    with pytest.raises(NotUnderstood, match="no ids"):
        wire.unwrap(content, {"work"})


def test_an_unknown_function_is_named_as_such_without_a_quote() -> None:
    content = json.dumps({"f": "someone@example.com", "a": [1, 2], "k": {}, "t": None, "et": 1}).encode()
    with pytest.raises(NotUnderstood) as caught:
        wire.unwrap(content, {"work"})
    assert str(caught.value) == "unknown function"
