import json
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
import structlog

from api import problems

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

MEMBERS = {"type", "title", "status", "code", "instance"}
ASK = {"agent": "support"}


def problem(answer: "httpx.Response", status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert said.keys() >= MEMBERS
    assert (said["status"], said["code"], said["type"]) == (status, code, f"urn:afterturn:problem:{code}")
    return said


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/turns/", "/v1/ana@example.com", "/docs", "/redoc", "/v1/turns/x"])
async def test_what_no_route_takes_is_not_found_and_not_repeated(client: "httpx.AsyncClient", path: str) -> None:
    said = problem(await client.get(path), 404, "not_found")
    assert said.keys() == MEMBERS
    assert "ana" not in str(said)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/turns"), ("PUT", "/v1/context"), ("POST", "/healthz")])
async def test_a_method_that_a_path_does_not_take_is_named_by_those_that_it_does(
    client: "httpx.AsyncClient", method: str, path: str
) -> None:
    answer = await client.request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] in {"POST", "GET"}


async def test_a_nul_in_the_query_is_refused_and_breaks_nothing(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint(scopes=("receipts:read",))
    answer = await client.get("/v1/receipts", params={"action": "\x00"}, headers=key.headers)
    problem(answer, 422, "invalid")


async def test_a_whole_number_may_be_written_with_a_point(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint()
    for limit, status in ((5.0, 200), (5.5, 422), (1e400, 400)):
        body = f'{{"agent": "support", "query": "x", "limit": {limit}}}'.replace("inf", "Infinity")
        answer = await client.post("/v1/observations/search", content=body, headers=key.headers)
        assert answer.status_code == status


async def test_all_methods_of_a_path_are_named_not_those_of_its_first_route(client: "httpx.AsyncClient") -> None:
    answer = await client.options("/v1/webhooks/one")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PUT")


async def test_each_problem_has_an_instance_of_its_own(client: "httpx.AsyncClient") -> None:
    first, second = (await client.get("/nowhere")).json(), (await client.get("/nowhere")).json()
    assert first["instance"] != second["instance"]
    assert first["instance"].startswith("urn:uuid:")


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/coverage/read"])
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense", ""]
)
async def test_another_content_type_is_refused(client: "httpx.AsyncClient", mint: "Mint", path: str, kind: str) -> None:
    key = await mint()
    answer = await client.post(path, content=b"{}", headers=key.headers | {"Content-Type": kind})
    problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", None]
)
async def test_json_is_known_by_each_of_its_names(client: "httpx.AsyncClient", mint: "Mint", kind: str | None) -> None:
    key = await mint()
    headers = key.headers | ({} if kind is None else {"Content-Type": kind})
    assert (await client.post("/v1/coverage/read", content=json.dumps(ASK), headers=headers)).status_code == 200


NO_JSON = [
    b"{",
    b"hello ana@example.com",
    b'{"agent":"support",}',
    b'{"agent":NaN}',
    b'{"agent":Infinity}',
    b"\xff\xfe",
    b'{"agent":"\xff"}',
    b"[" * 100_000,
    b'{"agent":' * 50_000,
    b"9" * 10_000,
    b"{}{}",
    b"\x00",
]


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/coverage/read"])
@pytest.mark.parametrize("body", NO_JSON, ids=range(len(NO_JSON)))
async def test_what_is_no_json_is_refused_and_not_repeated(
    client: "httpx.AsyncClient", mint: "Mint", path: str, body: bytes
) -> None:
    key = await mint()
    answer = await client.post(path, content=body, headers=key.headers)
    assert problem(answer, 400, "invalid_json").keys() == MEMBERS


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/coverage/read"])
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"ana@example.com"', b"7", b"true", b"[[1]]"])
async def test_json_of_another_shape_is_refused(
    client: "httpx.AsyncClient", mint: "Mint", path: str, body: bytes
) -> None:
    key = await mint()
    said = problem(await client.post(path, content=body, headers=key.headers), 422, "invalid")
    assert said["errors"][0]["path"] == "body"
    assert "ana" not in str(said)


SECRET = "Ana Lima, ana@example.com"
SPILLS: list[dict[str, Any]] = [
    {"agent": SECRET},
    {"agent": [SECRET]},
    {"agent": "support", "context": SECRET},
    {"agent": "support", "token_budget": SECRET},
    {"agent": "support", "format": SECRET},
    {"agent": "support", "query": SECRET * 400},
    {"agent": "support", "generation": SECRET},
    {"agent": "support", "conversation_id": {SECRET: SECRET}},
    {"agent": "support", "conversation_id": "c", "metadata": SECRET},
    {"agent": "support", "conversation_id": "c", "turns": {SECRET: 1}},
    {"agent": "support", "conversation_id": "c", "turns": [SECRET]},
    {"agent": "support", "conversation_id": "c", "turns": [{"role": SECRET}]},
    {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": {SECRET: 1}}]},
    {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": [{"type": [SECRET]}]}]},
    {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "x", "at": SECRET}]},
    {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "x", "name": [SECRET]}]},
]


@pytest.mark.parametrize("body", SPILLS, ids=range(len(SPILLS)))
async def test_no_refusal_repeats_the_input(client: "httpx.AsyncClient", mint: "Mint", body: dict[str, Any]) -> None:
    key = await mint(scopes=("turns:write", "memory:read", "operator"))
    reads = ("observations/read", "observations/search", "observations/restore", "context", "coverage/read")
    for path in ("turns", *reads):
        answer = await client.post(f"/v1/{path}", json=body, headers=key.headers)
        if answer.status_code != 200:
            said = problem(answer, 422, "invalid")
            assert "Ana" not in answer.text
            assert all(error["path"] and error["why"] for error in said["errors"])


async def test_a_fault_of_ours_is_a_problem_and_is_logged_without_its_message(
    client: "httpx.AsyncClient", mint: "Mint", monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await mint()

    async def broken(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr("api.coverage.coverage", broken)
    with structlog.testing.capture_logs() as logged:
        answer = await client.post("/v1/coverage/read", json=ASK, headers=key.headers)
    said = problem(answer, 500, "internal")
    (event,) = logged
    assert (event["event"], event["instance"]) == ("request_failed", said["instance"])
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    "lost",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.CannotConnectNowError(),
        asyncpg.AdminShutdownError(),
        asyncpg.TooManyConnectionsError(),
        asyncpg.InterfaceError(SECRET),
    ],
)
def test_a_lost_store_is_for_the_caller_to_try_again(lost: Exception) -> None:
    answer = problems.answer(lost)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("fault", [asyncpg.UniqueViolationError(SECRET), asyncpg.DataError(SECRET), ValueError(SECRET)])
def test_what_a_store_refuses_is_a_fault_of_ours(fault: Exception) -> None:
    answer = problems.answer(fault)
    assert answer.status_code == 500
    assert SECRET.encode() not in bytes(answer.body)
