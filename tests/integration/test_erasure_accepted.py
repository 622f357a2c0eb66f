"""An accepted erasure: from that moment nobody reads, writes or brings back; whoever dies in between is followed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from gateways import ledger
from gateways.key_store import KeyGone
from intake import erasure as erasing
from intake.erasure import Wish
from models.accepting import NothingThere

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

READS: dict[str, dict[str, Any]] = {
    "/v1/observations/read": {},
    "/v1/observations/search": {"query": "Porto"},
    "/v1/coverage/read": {},
    "/v1/context": {"conversation_id": "c1", "token_budget": 500},
}


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    scopes = ("turns:write", "memory:read", "operator")
    return await mint(scopes=scopes, admin=True, allow_impersonation=True)


def as_person(key: "Minted", person: str) -> dict[str, str]:
    return key.headers | {"X-Canonical-User": person}


async def say(
    client: "httpx.AsyncClient", key: "Minted", person: str, text: str, at: datetime | None = None, **more: Any
) -> "httpx.Response":
    turn: dict[str, Any] = {"role": "user", "content": text} | ({"at": at.isoformat()} if at else {})
    body = {"agent": "support", "conversation_id": "c1", "turns": [turn]} | more
    return await client.post("/v1/turns", json=body, headers=as_person(key, person))


async def erase(client: "httpx.AsyncClient", key: "Minted", person: str) -> "httpx.Response":
    named = {"handle_kind": "canonical_user", "handle": person}
    body = {"subject": named, "reason_code": "subject_request"}
    return await client.post("/v1/erasures", json=body, headers=key.headers)


async def rows(resources: "Resources", table: str, space: int) -> list[Any]:
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(space))
        return list(await connection.fetch(f"SELECT * FROM {table} WHERE space_id = $1 ORDER BY 1", space))  # noqa: S608 - names of this test


async def test_from_the_answer_on_nothing_can_be_read(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "I moved to Porto.")
    subject = (await rows(resources, "logs", key.space))[-1]["subject_id"]
    accepted = await erase(client, key, "ana")
    assert accepted.status_code == 202
    unknown = as_person(key, "somebody else entirely")
    for path, asks in READS.items():
        body = {"agent": "support"} | asks
        gone = await client.post(path, json=body, headers=as_person(key, "ana"))
        never = await client.post(path, json=body, headers=unknown)
        assert (gone.status_code, gone.text) == (200, never.text), path
    with pytest.raises(KeyGone):
        await resources.keys.key(subject)
    standing = await client.get(f"/v1/erasures/{accepted.json()['id']}", headers=key.headers)
    assert standing.json()["kind"] == "subject"
    assert standing.json()["counts"]["subjects"] == 1
    assert [one["action"] for one in await rows(resources, "receipts", key.space)] == ["erasure.accepted"]


async def test_an_erased_person_is_not_there_to_be_erased_again(client: "httpx.AsyncClient", key: "Minted") -> None:
    await say(client, key, "ana", "Hello")
    assert (await erase(client, key, "ana")).status_code == 202
    assert (await erase(client, key, "ana")).status_code == 404
    assert (await erase(client, key, "nobody")).status_code == 404


async def test_sixteen_erasures_of_one_person_at_once_are_one(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "Hello")
    answers = await asyncio.gather(*(erase(client, key, "ana") for _ in range(16)))
    assert sorted(answer.status_code for answer in answers) == [202] + [404] * 15
    assert len(await rows(resources, "erasures", key.space)) == 1
    assert await ledger.unfinished(resources.keys, 0) == []


async def test_what_was_said_before_is_refused_and_what_is_said_after_begins_anew(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    before = datetime.now(UTC)
    await say(client, key, "ana", "I moved to Porto.", before)
    old = {row["subject_id"] for row in await rows(resources, "logs", key.space)}
    await erase(client, key, "ana")
    late = await say(client, key, "ana", "I moved to Porto.", before)
    assert (late.status_code, late.json()["code"]) == (409, "subject_erased")
    mixed = [
        {"role": "user", "content": "now", "at": (datetime.now(UTC) + timedelta(seconds=1)).isoformat()},
        {"role": "user", "content": "then", "at": before.isoformat()},
    ]
    assert (await say(client, key, "ana", "", turns=mixed)).status_code == 409
    fresh = await say(client, key, "ana", "Hello again", datetime.now(UTC) + timedelta(seconds=1))
    assert fresh.status_code == 202
    untimed = await say(client, key, "ana", "And again")
    assert untimed.status_code == 202
    new = {row["subject_id"] for row in await rows(resources, "logs", key.space)}
    assert len(new) == 1
    assert not new & old


async def test_the_neighbour_of_the_same_conversation_id_is_untouched(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "I am Ana.")
    await say(client, key, "bo", "I am Bo.")
    kept = {table: await rows(resources, table, key.space) for table in ("logs", "conversations", "handles", "turns")}
    bo = max(kept["logs"], key=lambda row: row["id"])["subject_id"]
    await erase(client, key, "ana")
    for table, was in kept.items():
        now = await rows(resources, table, key.space)
        assert [row for row in now if row["subject_id"] == bo] == [row for row in was if row["subject_id"] == bo], table


async def test_a_person_who_talks_all_the_while_is_never_half_erased(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "Hello")

    async def talk(number: int) -> int:
        return (await say(client, key, "ana", f"turn {number}", conversation_id=f"c{number % 3}")).status_code

    talking = [asyncio.create_task(talk(number)) for number in range(40)]
    answer = await erase(client, key, "ana")
    codes = await asyncio.gather(*talking)
    assert answer.status_code == 202
    assert set(codes) <= {202, 409}
    logs = {row["id"] for row in await rows(resources, "logs", key.space)}
    target = (await rows(resources, "erasures", key.space))[0]["target"]
    fixed = set(target["logs"])
    assert {row["log_id"] for row in await rows(resources, "turns", key.space)} <= logs | fixed
    assert not logs & fixed


async def test_a_key_whose_owner_is_erased_opens_nothing_any_more(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    owned = await mint(owner="ana@example.com")
    await client.post(
        "/v1/turns",
        json={"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "x"}]},
        headers=owned.headers,
    )
    await erasing.accept(resources, Wish(owned.space, "account_closed", "key_test", subject=owned.owner))
    for _ in range(100):
        answer = await client.post("/v1/observations/read", json={"agent": "support"}, headers=owned.headers)
        if answer.status_code == 401:
            break
        await asyncio.sleep(0.02)  # the key is trusted for less than a second
    assert answer.status_code == 401


async def broken_after_ledger(resources: "Resources", wish: Wish, patch: pytest.MonkeyPatch) -> None:
    async def dies(*_: Any, **__: Any) -> None:
        raise ConnectionError("kill -9")

    patch.setattr(erasing, "_commit", dies)
    with pytest.raises(ConnectionError):
        await erasing.accept(resources, wish)


async def broken_after_data(resources: "Resources", wish: Wish, patch: pytest.MonkeyPatch) -> None:
    async def dies(*_: Any) -> None:
        raise ConnectionError("kill -9")

    patch.setattr(type(resources.keys), "destroy", dies)
    with pytest.raises(ConnectionError):
        await erasing.accept(resources, wish)


async def broken_after_keys(resources: "Resources", wish: Wish, patch: pytest.MonkeyPatch) -> None:
    async def dies(*_: Any) -> None:
        raise ConnectionError("kill -9")

    patch.setattr(ledger, "mark_applied", dies)
    with pytest.raises(ConnectionError):
        await erasing.accept(resources, wish)


@pytest.mark.parametrize("broken", [broken_after_ledger, broken_after_data, broken_after_keys])
async def test_whoever_dies_in_between_is_followed_to_the_end(
    client: "httpx.AsyncClient",
    resources: "Resources",
    key: "Minted",
    broken: Callable[["Resources", Wish, pytest.MonkeyPatch], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await say(client, key, "ana", "Hello")
    subject: UUID = (await rows(resources, "logs", key.space))[-1]["subject_id"]
    with monkeypatch.context() as patch:
        await broken(resources, Wish(key.space, "other", "key_test", subject=subject), patch)
    assert await ledger.missing(resources.keys, resources.database) == []  # a crash is no restored backup
    monkeypatch.setattr(erasing, "_STUCK", 0.0)
    await erasing.finish(resources)
    assert await ledger.unfinished(resources.keys, 0) == []
    assert len(await rows(resources, "erasures", key.space)) == 1
    assert (
        len([one for one in await rows(resources, "receipts", key.space) if one["action"] == "erasure.accepted"]) == 1
    )
    assert subject not in {row["id"] for row in await rows(resources, "subjects", key.space)}
    with pytest.raises(KeyGone):
        await resources.keys.key(subject)


async def test_a_crash_over_nothing_is_withdrawn(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(client, key, "ana", "Hello")
    subject: UUID = (await rows(resources, "logs", key.space))[-1]["subject_id"]
    wish = Wish(key.space, "other", "key_test", subject=subject)
    with monkeypatch.context() as patch:
        await broken_after_ledger(resources, wish, patch)
    await erasing.accept(resources, wish)
    with pytest.raises(NothingThere):
        await erasing.accept(resources, wish)
    monkeypatch.setattr(erasing, "_STUCK", 0.0)
    await erasing.finish(resources)
    assert await ledger.unfinished(resources.keys, 0) == []
    assert len(await rows(resources, "erasures", key.space)) == 1


async def test_one_conversation_goes_and_the_others_stay(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "the first", conversation_id="one")
    await say(client, key, "ana", "the second", conversation_id="two")
    named = {"subject": {"handle_kind": "canonical_user", "handle": "ana"}, "conversation_id": "one"}
    wrong = named | {"conversation_id": "three"}
    answers = [
        await client.post("/v1/erasures", json={"conversation": which, "reason_code": "error"}, headers=key.headers)
        for which in (wrong, named, named)
    ]
    assert [answer.status_code for answer in answers] == [404, 202, 404]
    assert len(await rows(resources, "conversations", key.space)) == 1
    assert len(await rows(resources, "logs", key.space)) == 1


async def test_another_spaces_person_is_not_there(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    other = await mint(scopes=("turns:write", "operator"), admin=True, allow_impersonation=True)
    await say(client, other, "ana", "Hello")
    assert (await erase(client, key, "ana")).status_code == 404
    accepted = (await erase(client, other, "ana")).json()["id"]
    for path in ("", "/certificate", "/verify"):
        assert (await client.get(f"/v1/erasures/{accepted}{path}", headers=key.headers)).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"reason_code": "other"},
        {"agent": "a", "subject": {"handle_kind": "email", "handle": "a@example.com"}, "reason_code": "other"},
        {"agent": "a", "reason_code": "because"},
        {"subject": {"handle_kind": "shoe", "handle": "x"}, "reason_code": "other"},
        {"agent": "a", "reason_code": "other", "reason_cod": "x"},
    ],
)
async def test_what_cannot_be_meant_is_refused(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", body: dict[str, Any]
) -> None:
    answer = await client.post("/v1/erasures", json=body, headers=key.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert await rows(resources, "erasures", key.space) == []
