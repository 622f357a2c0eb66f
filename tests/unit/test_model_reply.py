"""Reading what model servers say, byte by byte."""

import json
from datetime import UTC, datetime

import pytest

from gateways.model_reply import read_completion, read_error, retry_after
from memory.outcome import Outcome, Usage

NOW = datetime(2026, 3, 2, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Mon, 02 Mar 2026 10:00:30 GMT", 30.0),
        ("Mon, 02 Mar 2026 09:00:00 GMT", 0.0),
        ("Tue, 03 Mar 2026 10:00:00 GMT", 900.0),
        ("Mon, 02 Mar 2026 10:00:30 -0000", 30.0),
        ("Mon, 99 Mar 2026 10:00:30 GMT", None),
        ("12", 12.0),
        ("inf", 900.0),
        (None, None),
    ],
)
def test_a_wait_is_read_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the available context size, try increasing it",
        "Prompt is too long: 210000 tokens > 200000 maximum",
        "input is too long for requested model",
        "Requested tokens exceed context window of 4096",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_prompt_that_is_too_long_is_known_by_any_servers_words(status: int, message: str) -> None:
    body = json.dumps({"error": {"message": message}})
    assert read_error(status, {}, body, now=NOW).outcome is Outcome.OVER_LONG


@pytest.mark.parametrize(
    "choice",
    [None, 3, "x", {}, {"message": None}, {"message": "x"}, {"message": {"content": 7}}, {"message": {"content": {}}}],
)
def test_a_choice_of_no_sensible_shape_is_an_empty_answer(choice: object) -> None:
    body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 5}}).encode()
    answer = read_completion(body)
    assert answer.outcome is Outcome.EMPTY
    assert answer.usage == Usage(input_tokens=5)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"7", b"{}", b'{"choices": {}}', b"\xff", b"data: {}\n\n", b"9" * 9_999]
)
def test_a_body_of_no_completion_is_the_providers_error(body: bytes) -> None:
    assert read_completion(body).outcome is Outcome.PROVIDER_ERROR


@pytest.mark.parametrize("usage", [None, 3, {"prompt_tokens": -1, "completion_tokens": True}, {"prompt_tokens": 2**80}])
def test_a_usage_that_cannot_be_is_not_counted(usage: object) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode()
    assert read_completion(body).usage == Usage()


def test_an_unknown_finish_and_an_error_of_odd_shape_carry_no_text_into_the_answer() -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "ana@canary.example"}]}).encode()
    assert read_completion(body).finish_reason is None
    odd = json.dumps({"error": {"code": "ana@canary.example said", "type": ["ana"], "message": "ana"}})
    assert read_error(500, {}, odd, now=NOW).detail == "500"
