import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from api import auth
from models import api_key, observation
from models import log as logs

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Remember

    from jobs.resources import Resources

ASK = {"agent": "support"}
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/turns": ASK | {"conversation_id": "c-1", "turns": [{"role": "user", "content": "hello"}]},
    "/v1/observations/read": ASK,
    "/v1/observations/search": ASK | {"query": "porto"},
    "/v1/observations/flush": ASK,
    "/v1/observations/restore": ASK | {"generation": 1},
    "/v1/coverage/read": ASK,
    "/v1/context": ASK | {"conversation_id": "c-1", "token_budget": 100},
}
EVERY_SCOPE = ("turns:write", "memory:read", "operator")
FORGED = {
    "X-Canonical-User": "ana@example.com",
    "X-End-User": "ana",
    "X-Channel-Sender": "sms:+351912345678",
    "X-Platform-User": "7",
}


@pytest.mark.parametrize("path", [*ROUTES, "/v1/quarantine", "/v1/quarantine/1/retry"])
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer at_nobody", "at_nobody", f"Bearer {'s' * 10_000}"],
)
async def test_without_a_living_key_nothing_opens(
    client: "httpx.AsyncClient", path: str, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    method = "GET" if path == "/v1/quarantine" else "POST"
    answer = await client.request(method, path, content=b"not even JSON", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize(
    ("path", "scope"),
    [(path, "memory:read") for path in ROUTES]
    + [("/v1/turns", "turns:write"), ("/v1/observations/restore", "operator"), ("/v1/quarantine/1/retry", "operator")],
)
async def test_a_missing_scope_is_named(client: "httpx.AsyncClient", mint: "Mint", path: str, scope: str) -> None:
    needed = {"/v1/turns": "turns:write", "/v1/observations/restore": "operator"}.get(path, scope)
    key = await mint(scopes=tuple({*EVERY_SCOPE, "security"} - {needed}))
    answer = await client.post(path, json=ROUTES.get(path, {}), headers=key.headers)
    assert (answer.status_code, answer.json()["code"], answer.json()["scope"]) == (403, "scope_missing", needed)
    assert f'scope="{needed}"' in answer.headers["www-authenticate"]


async def test_a_revoked_key_is_refused_within_a_second(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    assert (await client.post("/v1/coverage/read", json=ASK, headers=key.headers)).status_code == 200
    assert await api_key.revoke(resources.database.pool, key.space, key.id)
    revoked_at = time.monotonic()
    asked_at = revoked_at
    while (await client.post("/v1/coverage/read", json=ASK, headers=key.headers)).status_code != 401:
        assert asked_at - revoked_at < 1.0  # when it was asked counts: an answer takes as long as the machine lets it
        asked_at = time.monotonic()


async def test_a_known_key_is_not_looked_up_at_each_request(
    client: "httpx.AsyncClient", mint: "Mint", monkeypatch: pytest.MonkeyPatch
) -> None:
    key, looked_up = await mint(), 0
    true_look_up: Callable[..., Any] = api_key.credential

    async def counted(*arguments: Any) -> Any:
        nonlocal looked_up
        looked_up += 1
        return await true_look_up(*arguments)

    monkeypatch.setattr(api_key, "credential", counted)
    began = time.monotonic()
    for _ in range(20):
        await client.post("/v1/coverage/read", json=ASK, headers=key.headers)
    assert looked_up <= 1 + (time.monotonic() - began) / 0.35


async def test_a_crowd_goes_by_the_credential_that_is_known_while_one_caller_asks_again(
    client: "httpx.AsyncClient", mint: "Mint", monkeypatch: pytest.MonkeyPatch
) -> None:
    key, asked, goes_on = await mint(), 0, asyncio.Event()
    true_look_up: Callable[..., Any] = api_key.credential

    async def held_up(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > 1:
            await goes_on.wait()
        return await true_look_up(*arguments)

    monkeypatch.setattr(api_key, "credential", held_up)
    monkeypatch.setattr(auth, "_ASKED_AFTER", -1.0)
    monkeypatch.setattr(auth, "_TRUSTED", 60.0)

    async def reads() -> int:
        return (await client.post("/v1/coverage/read", json=ASK, headers=key.headers)).status_code

    assert await reads() == 200
    asking = asyncio.create_task(reads())
    while asked < 2:  # noqa: ASYNC110 - the request has no event for it
        await asyncio.sleep(0)
    assert [await reads() for _ in range(3)] == [200] * 3
    assert asked == 2
    goes_on.set()
    assert await asking == 200


@pytest.mark.parametrize("path", ROUTES)
async def test_a_key_of_one_agent_finds_no_other(client: "httpx.AsyncClient", mint: "Mint", path: str) -> None:
    key = await mint(scopes=EVERY_SCOPE, agent="sales")
    answer = await client.post(path, json=ROUTES[path], headers=key.headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("rights", [{}, {"admin": True}, {"allow_impersonation": True}])
async def test_forged_identity_headers_are_ignored_and_named(
    client: "httpx.AsyncClient",
    mint: "Mint",
    remember: "Remember",
    resources: "Resources",
    path: str,
    rights: dict[str, bool],
) -> None:
    key = await mint(scopes=EVERY_SCOPE, owner="me", **rights)
    await remember(key, "a line")
    async with resources.database.begin(key.space) as tx:  # so that there is something to restore
        log = await logs.find(tx, key.space, key.owner, "support", "corporate")
        assert log is not None
        await observation.begin_generation(tx, log, "reflect")
    answer = await client.post(path, json=ROUTES[path], headers=key.headers | FORGED)
    assert answer.is_success, answer.text
    assert answer.json()["memory_identity"]["kind"] == "owner"
    assert sorted(answer.json()["memory_identity"]["ignored"]) == sorted(FORGED)
    metrics = (await client.get("/metrics")).text
    assert 'afterturn_identity_headers_ignored_total{header="X-Canonical-User"}' in metrics


async def test_a_forged_header_neither_reads_nor_writes_another_persons_log(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    victim = await mint("forgers", owner="ana")
    await remember(victim, "Ana lives in Porto.")
    forger = await mint("forgers", owner="eve")
    for name in FORGED:
        for handle in ("ana", "owner:ana", victim.owner.hex, f"sub_{victim.owner.hex}"):
            headers = forger.headers | {name: handle}
            read = await client.post("/v1/observations/read", json=ASK, headers=headers)
            assert read.json()["block"] == ""
            await client.post("/v1/turns", json=ROUTES["/v1/turns"], headers=headers)
    covered = await client.post("/v1/coverage/read", json=ASK, headers=victim.headers)
    assert covered.json()["turns"]["pending"] == 0


async def backend(mint: "Mint", space: str | None = None) -> "Minted":
    return await mint(space, EVERY_SCOPE, owner="backend", admin=True, allow_impersonation=True)


async def post_as(client: "httpx.AsyncClient", key: "Minted", path: str, **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await client.post(path, json=ROUTES[path], headers=key.headers | named)
    assert answer.is_success, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_each_canonical_user_has_a_log_of_their_own(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await backend(mint)
    first = await post_as(client, key, "/v1/turns", X_Canonical_User="ana")
    second = await post_as(client, key, "/v1/turns", X_Canonical_User="bela")
    own = await post_as(client, key, "/v1/turns")
    assert len({said["memory_identity"]["id"] for said in (first, second, own)}) == 3
    assert first["memory_identity"]["kind"] == "canonical_user"
    assert own["memory_identity"] == {"kind": "owner", "id": f"sub_{key.owner.hex}", "ignored": []}
    covered = await post_as(client, key, "/v1/coverage/read", X_Canonical_User="ana")
    assert covered["turns"]["pending"] == 1


async def test_an_end_user_alone_does_not_separate_logs(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await backend(mint)
    await post_as(client, key, "/v1/turns", X_End_User="ana")
    await post_as(client, key, "/v1/turns", X_End_User="bela")
    covered = await post_as(client, key, "/v1/coverage/read")
    assert covered["turns"]["pending"] == 2


async def test_a_canonical_user_can_never_equal_a_signed_in_owner(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    space = "name-spaces"
    ana = await mint(space, owner="ana")
    await remember(ana, "Ana lives in Porto.")
    read = await post_as(client, await backend(mint, space), "/v1/observations/read", X_Canonical_User="ana")
    assert read["block"] == ""


async def test_two_spaces_never_share_a_person(client: "httpx.AsyncClient", mint: "Mint") -> None:
    here, there = await backend(mint), await backend(mint)
    first = await post_as(client, here, "/v1/turns", X_Canonical_User="ana")
    second = await post_as(client, there, "/v1/turns", X_Canonical_User="ana")
    assert first["memory_identity"]["id"] != second["memory_identity"]["id"]
    assert second["accepted"] == 1


async def test_the_legacy_platform_selector_selects_nothing(client: "httpx.AsyncClient", mint: "Mint") -> None:
    said = await post_as(client, await backend(mint), "/v1/turns", X_Platform_User="ana")
    assert said["memory_identity"]["kind"] == "owner"
    assert said["memory_identity"]["ignored"] == ["X-Platform-User"]


@pytest.mark.parametrize("path", [path for path in ROUTES if path not in {"/v1/turns", "/v1/observations/restore"}])
async def test_reading_an_unknown_person_is_empty_and_makes_nobody(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources", path: str
) -> None:
    key = await backend(mint)
    await post_as(client, key, "/v1/turns", X_Canonical_User="bela")
    unknown = await post_as(client, key, path, X_Canonical_User="nobody")
    known = await post_as(client, key, path, X_Canonical_User="bela", X_End_User="nobody-either")
    assert set(unknown) == set(known)
    assert unknown["memory_identity"] == known["memory_identity"]
    if "observations" in path and "flush" not in path:
        assert unknown == known  # to the last number
    async with resources.database.begin(key.space) as tx:
        assert (await tx.execute(text("SELECT count(*) FROM subjects"))).scalar_one() == 2  # the backend, and Bela


async def test_many_first_turns_at_once_make_one_person(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await backend(mint)
    said = await asyncio.gather(*(post_as(client, key, "/v1/turns", X_Canonical_User="new") for _ in range(30)))
    assert len({one["memory_identity"]["id"] for one in said}) == 1
    assert sum(one["accepted"] for one in said) == 30


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Canonical-User", "ana"), ("X-Canonical-User", "bela")],
        [("X-Canonical-User", "a" * 513)],
        [("X-Canonical-User", "a\x7fb")],
        [("X-Channel-Sender", "no-type")],
        [("X-Channel-Sender", "sms:")],
    ],
)
async def test_a_handle_that_can_name_nobody_is_refused_by_its_header(
    client: "httpx.AsyncClient", mint: "Mint", headers: list[tuple[str, str]]
) -> None:
    key = await backend(mint)
    sent = [*key.headers.items(), *headers]
    answer = await client.post("/v1/observations/read", json=ASK, headers=sent)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == headers[0][0]
    assert headers[0][1] not in answer.text


async def test_a_handle_in_utf_8_is_the_same_in_every_spelling_of_unicode(
    client: "httpx.AsyncClient", mint: "Mint"
) -> None:
    key = await backend(mint)
    ids = set()
    for spelling in ("Jos\u00e9", "Jose\u0301", "  Jos\u00e9 "):
        sent = key.headers | {"X-Canonical-User": spelling.encode()}  # type: ignore[dict-item]  # httpx takes bytes
        answer = await client.post("/v1/turns", json=ROUTES["/v1/turns"], headers=sent)
        ids.add(answer.json()["memory_identity"]["id"])
    assert len(ids) == 1


async def test_two_keys_on_one_request_are_none(client: "httpx.AsyncClient", mint: "Mint") -> None:
    keys = [await mint() for _ in range(2)]
    headers = [("Authorization", key.headers["Authorization"]) for key in keys]
    for sent in (headers, headers[:1] * 2):
        answer = await client.post("/v1/observations/read", json={"agent": "support"}, headers=sent)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
