"""The model server against its scripted twin: everything that a server does comes back as the right outcome."""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateways.model_server import ModelServer
from gateways.scripted_behaviour import BEHAVIOURS, Asked
from gateways.scripted_model import Script, ScriptedModel, scripted
from memory.outcome import Answer, Outcome, Prompt

ROOT = Path(__file__).parents[2]
CANARY = "ana@canary.example"
TEXT = json.dumps({"observations": [{"text": CANARY}]})
PROMPT = Prompt(
    instructions="Condense the turns.",
    data=f"# Turns\n1> I moved to Porto, write to {CANARY} tok-1",
    schema={"type": "object", "properties": {"observations": {"type": "array"}}, "required": ["observations"]},
    schema_name="observations",
    max_output_tokens=500,
)


def client(url: str, *, timeout: float = 5.0, window: int = 8_000) -> ModelServer:
    return ModelServer(
        url, "small-model", api_key="sk-secret", timeout=timeout, window_tokens=window, max_output_tokens=400
    )


@asynccontextmanager
async def facing(script: Script, *, patience: float = 5.0) -> AsyncIterator[tuple[ModelServer, ScriptedModel]]:
    async with scripted(script, answer=lambda _asked: TEXT) as server:
        model = client(server.url, timeout=patience)
        yield model, server
        await model.close()


EXPECTED = {
    "good": Outcome.OK,
    "slow": Outcome.OK,
    "dripping": Outcome.TIMEOUT,
    "hanging": Outcome.TIMEOUT,
    "dropped": Outcome.PROVIDER_ERROR,
    "closed": Outcome.PROVIDER_ERROR,
    "fenced": Outcome.OK,
    "prose": Outcome.OK,
    "truncated": Outcome.OK,
    "loop": Outcome.OK,
    "babble": Outcome.OK,
    "empty": Outcome.EMPTY,
    "null_content": Outcome.EMPTY,
    "exhausted": Outcome.OVER_LONG,
    "in_parts": Outcome.OK,
    "half_characters": Outcome.OK,
    "refusal": Outcome.REFUSAL,
    "filtered": Outcome.REFUSAL,
    "garbage": Outcome.PROVIDER_ERROR,
    "no_choices": Outcome.EMPTY,
    "odd_json": Outcome.PROVIDER_ERROR,
    "deep_json": Outcome.PROVIDER_ERROR,
    "html": Outcome.PROVIDER_ERROR,
    "html_error": Outcome.PROVIDER_ERROR,
    "error_in_200": Outcome.RATE_LIMIT,
    "wrong_type": Outcome.OK,
    "compressed": Outcome.PROVIDER_ERROR,
    "huge": Outcome.PROVIDER_ERROR,
    "moved": Outcome.PROVIDER_ERROR,
    "rate_limited": Outcome.RATE_LIMIT,
    "unavailable": Outcome.PROVIDER_ERROR,
    "server_error": Outcome.PROVIDER_ERROR,
    "bad_request": Outcome.PROVIDER_ERROR,
    "unauthorized": Outcome.PROVIDER_ERROR,
    "forbidden": Outcome.PROVIDER_ERROR,
    "no_such_model": Outcome.PROVIDER_ERROR,
    "context_too_long": Outcome.OVER_LONG,
    "too_large": Outcome.OVER_LONG,
    "policy": Outcome.REFUSAL,
    "gateway_timeout": Outcome.TIMEOUT,
    "no_json_schema": Outcome.OK,
    "no_schema_beside": Outcome.OK,
    "no_formats": Outcome.OK,
    "no_max_tokens": Outcome.OK,
}


def test_every_behaviour_has_an_outcome_expected_of_it() -> None:
    assert EXPECTED.keys() == BEHAVIOURS.keys()


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_each_behaviour_ends_in_its_outcome(behaviour: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    quick = EXPECTED[behaviour] is Outcome.TIMEOUT
    script = {"play": behaviour, "seconds": 0.05}
    async with facing(script, patience=0.3 if quick else 5.0) as (model, _):
        answer = await model.ask(PROMPT)
    assert answer.outcome is EXPECTED[behaviour], answer
    assert (answer.outcome is Outcome.OK) == bool(answer.text)
    assert CANARY not in answer.detail
    assert CANARY not in caplog.text
    assert "sk-secret" not in caplog.text


async def test_a_good_answer_carries_its_text_and_what_it_cost() -> None:
    async with facing("good") as (model, _):
        answer = await model.ask(PROMPT)
    assert answer.text == TEXT
    assert answer.finish_reason == "stop"
    assert answer.usage.input_tokens > answer.usage.cached_tokens > 0
    assert answer.usage.output_tokens == len(TEXT) // 4


async def test_a_cut_answer_says_so_and_its_halves_of_characters_are_mended() -> None:
    async with facing(["truncated", "half_characters"]) as (model, _):
        cut, mended = await model.ask(PROMPT), await model.ask(PROMPT)
    assert cut.finish_reason == "length"
    assert TEXT.startswith(cut.text)
    assert mended.text == '{"observations": "\ufffd"}'


@pytest.mark.parametrize(
    ("named", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("1e9", 900.0), ("-3", 0.0), ("nan", None), ("soon", None), ("", None)],
)
async def test_a_rate_limit_names_its_wait_within_bounds(named: str, seconds: float | None) -> None:
    async with facing({"play": "rate_limited", "retry_after": named}) as (model, server):
        answer = await model.ask(PROMPT)
    assert answer == Answer(Outcome.RATE_LIMIT, retry_after=seconds, detail="429 rate_limit_exceeded")
    assert server.count == 1


@pytest.mark.parametrize(
    ("behaviour", "advice"),
    [
        ("unauthorized", "AFTERTURN_MODEL_API_KEY"),
        ("forbidden", "AFTERTURN_MODEL_API_KEY"),
        ("no_such_model", "AFTERTURN_MEMORY_WORKER_MODEL"),
        ("moved", "AFTERTURN_MODEL_BASE_URL"),
    ],
)
async def test_what_an_operator_must_mend_is_said_once_and_not_hammered(behaviour: str, advice: str) -> None:
    async with facing(behaviour) as (model, server):
        answer = await model.ask(PROMPT)
    assert advice in answer.detail
    assert server.count == 1
    if behaviour != "moved":
        assert (answer.retry_after or 0) >= 60


async def test_the_request_is_what_every_server_takes() -> None:
    async with facing("good") as (model, server):
        await model.ask(PROMPT)
        sent = server.asked[0].body
    assert [(said["role"], type(said["content"])) for said in sent["messages"]] == [("system", str), ("user", str)]
    assert sent["messages"][0]["content"] == PROMPT.instructions
    assert sent["response_format"]["json_schema"]["schema"] == PROMPT.schema
    assert sent["max_tokens"] == 400
    assert sent["model"] == "small-model"


@pytest.mark.parametrize(
    ("behaviour", "requests", "form", "beside"),
    [
        ("no_json_schema", 2, "json_object", True),
        ("no_schema_beside", 3, "json_object", False),
        ("no_formats", 4, "text", False),
    ],
)
async def test_a_server_without_structured_output_is_asked_by_its_lights_and_remembered(
    behaviour: str, requests: int, form: str, *, beside: bool
) -> None:
    async with facing(behaviour) as (model, server):
        await model.ask(PROMPT)
        first = server.count
        await model.ask(PROMPT)
        last = server.asked[-1]
        assert (first, server.count) == (requests, requests + 1)
    assert last.response_format == form
    assert ("schema" in last.body.get("response_format", {})) == beside
    assert '"observations"' in last.system


async def test_a_model_that_takes_neither_max_tokens_nor_a_temperature_is_asked_without_them() -> None:
    async with facing("no_max_tokens") as (model, server):
        assert (await model.ask(PROMPT)).outcome is Outcome.OK
        assert server.asked[-1].body["max_completion_tokens"] == 400
        assert not {"max_tokens", "temperature"} & server.asked[-1].body.keys()
        assert server.asked[-1].response_format == "json_schema"


async def test_failures_teach_nothing_about_the_formats() -> None:
    async with facing(["good", "bad_request", "server_error", "bad_request", "good"]) as (model, server):
        outcomes = [(await model.ask(PROMPT)).outcome for _ in range(5)]
        assert server.count == 5
        assert {asked.response_format for asked in server.asked} == {"json_schema"}
    assert outcomes == [Outcome.OK, *[Outcome.PROVIDER_ERROR] * 3, Outcome.OK]


async def test_a_prompt_larger_than_the_window_is_not_sent() -> None:
    async with scripted("good") as server:
        model = client(server.url, window=410)
        assert (await model.ask(PROMPT)).outcome is Outcome.OVER_LONG
        assert server.count == 0
        await model.close()


async def test_nobody_listening_is_a_provider_error() -> None:
    async with scripted("good") as server:
        url = server.url
    model = client(url)
    answer = await model.ask(PROMPT)
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.detail == "ConnectError"
    await model.close()


async def test_a_name_that_resolves_to_nothing_is_a_provider_error() -> None:
    model = client("http://no-such-host.invalid/v1")
    assert (await model.ask(PROMPT)).outcome in {Outcome.PROVIDER_ERROR, Outcome.TIMEOUT}
    await model.close()


async def test_only_the_base_url_is_contacted_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted("good") as elsewhere, scripted("good") as server:
        proxy = elsewhere.url.removesuffix("/v1")
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        monkeypatch.setenv("OPENAI_BASE_URL", elsewhere.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: environment")
        model = client(server.url)
        assert (await model.ask(PROMPT)).outcome is Outcome.OK
        await model.close()
        headers = server.asked[0].headers
        assert elsewhere.count == 0
    assert headers["authorization"] == "Bearer sk-secret"
    assert "environment" not in str(headers)
    assert headers.keys() == {
        "host", "authorization", "content-type", "content-length", "accept", "accept-encoding", "user-agent",
    }  # fmt: skip


async def test_a_cancelled_question_is_cancelled_and_the_next_is_answered() -> None:
    async with facing(["hanging", "good"]) as (model, server):
        asking = asyncio.create_task(model.ask(PROMPT))
        await server.received(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await model.ask(PROMPT)).outcome is Outcome.OK


async def test_many_questions_at_once_through_every_mishap_all_end() -> None:
    slow = {"huge", "dripping", "hanging"}
    mishaps: dict[str, float] = {name: 1.0 for name in BEHAVIOURS if name not in slow}
    script = {"play": {**mishaps, "good": 10.0}, "seed": 7, "seconds": 0.01}
    async with facing(script, patience=60.0) as (model, server):
        answers = await asyncio.gather(*(model.ask(PROMPT) for _ in range(200)))
    assert len(answers) == 200
    assert {Outcome.OK, Outcome.EMPTY, Outcome.REFUSAL, Outcome.RATE_LIMIT} <= {answer.outcome for answer in answers}
    assert not any(CANARY in answer.detail for answer in answers)
    assert server.peak > 1


async def test_a_broken_server_can_be_healed_from_another_process_over_its_own_port() -> None:
    async with facing("server_error") as (model, server):
        broken = await model.ask(PROMPT)
        assert await told(server, "POST /script", b'{"play": "good"}') == (200, {})
        assert (await told(server, "POST /script", b'"no such behaviour"'))[0] == 422
        healed = await model.ask(PROMPT)
        _, requests = await told(server, "GET /requests")
    assert (broken.outcome, healed.outcome) == (Outcome.PROVIDER_ERROR, Outcome.OK)
    assert requests["count"] == len(requests["times"]) == 2


async def told(server: ScriptedModel, line: str, body: bytes = b"") -> tuple[int, dict[str, object]]:
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{line} HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.partition("content-length: ")[2].split()[0])
    answer = json.loads(await reader.readexactly(length))
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return int(head.split()[1]), answer


async def test_a_callable_may_choose_by_the_request() -> None:
    def choose(asked: Asked) -> str:
        return "refusal" if CANARY in asked.user else "good"

    async with facing(choose) as (model, _):
        assert (await model.ask(PROMPT)).outcome is Outcome.REFUSAL


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("", "k"),
        ("host/v1", "k"),
        ("ftp://host/v1", "k"),
        ("http:///v1", "k"),
        ("http://host:99999/v1", "k"),
        ("http://[::1/v1", "k"),
        ("http://\u200bx/", "k"),
        ("http://host/v1", ""),
        ("http://host/v1", "ключ"),
        ("http://host/v1", "a\nb"),
    ],
)
def test_a_url_or_key_that_can_be_sent_to_nobody_is_refused_at_once(url: str, key: str) -> None:
    with pytest.raises(ValueError, match="model server"):
        ModelServer(url, "m", api_key=key, timeout=1, window_tokens=100, max_output_tokens=10)


async def test_run_on_its_own_it_says_where_it_is_and_plays_the_script_given() -> None:
    script = '{"play": ["rate_limited", "good"], "retry_after": "3"}'
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateways.scripted_model", "--script", script, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert program.stdout is not None
    word, url = (await program.stdout.readline()).decode().split()
    model = client(url)
    answers = [await model.ask(PROMPT) for _ in range(2)]
    await model.close()
    program.terminate()
    await program.wait()
    assert word == "ready"
    assert [(answer.outcome, answer.retry_after) for answer in answers] == [
        (Outcome.RATE_LIMIT, 3.0),
        (Outcome.OK, None),
    ]
    assert "tok-1" in answers[1].text
