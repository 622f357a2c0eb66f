"""An erasure beside everything else that may happen at that moment: retries, other processes, links, slow commits."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from api.app import create_app
from gateways import ledger
from intake import erasure as erasing
from intake.erasure import Wish
from intake.identity import People
from models import accepting
from models import link as links
from models.accepting import NothingThere
from models.database import driver
from privacy.sealing import SealingKey

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Serving

    from config.settings import Settings
    from jobs.resources import Resources


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    scopes = ("turns:write", "memory:read", "operator", "profiles:write")
    return await mint(scopes=scopes, admin=True, allow_impersonation=True)


async def say(client: "httpx.AsyncClient", key: "Minted", person: str, text: str, **headers: str) -> "httpx.Response":
    body = {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": text}]}
    return await client.post("/v1/turns", json=body, headers=key.headers | {"X-Canonical-User": person} | headers)


async def erase(client: "httpx.AsyncClient", key: "Minted", person: str, **headers: str) -> "httpx.Response":
    body = {"subject": {"handle_kind": "canonical_user", "handle": person}, "reason_code": "subject_request"}
    return await client.post("/v1/erasures", json=body, headers=key.headers | headers)


async def rows(resources: "Resources", table: str, space: int) -> list[Any]:
    async with resources.database.begin(space) as tx:
        query = f"SELECT * FROM {table} t WHERE space_id = $1 ORDER BY t::text"  # noqa: S608 - names of this test
        return list(await (await driver(tx)).fetch(query, space))


async def subject_of(resources: "Resources", key: "Minted") -> UUID:
    found: UUID = max(await rows(resources, "logs", key.space), key=lambda row: row["id"])["subject_id"]
    return found


async def test_a_retry_by_an_idempotency_key_from_before_is_refused_and_a_new_one_is_not(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    first = {"Idempotency-Key": "call-1"}
    assert (await say(client, key, "ana", "I moved to Porto.", **first)).status_code == 202
    await say(client, key, "bo", "I am Bo.", **{"Idempotency-Key": "call-of-bo"})
    await erase(client, key, "ana")
    for _ in range(2):
        late = await say(client, key, "ana", "I moved to Porto.", **first)
        assert (late.status_code, late.json()["code"]) == (409, "subject_erased")
    assert (await say(client, key, "ana", "Hello", **{"Idempotency-Key": "call-2"})).status_code == 202
    assert (await say(client, key, "ana", "I moved to Porto.", **first)).status_code == 409
    # Another's retry is another's: by the same key, of a person who was erased as well.
    await erase(client, key, "bo")
    assert (await say(client, key, "bo", "Hello", **first)).status_code == 202
    assert (await say(client, key, "bo", "Hello", **{"Idempotency-Key": "call-of-bo"})).status_code == 409
    assert (await say(client, key, "ana", "Hello", **{"Idempotency-Key": "call-of-bo"})).status_code == 202


@pytest.mark.parametrize("what", ["subject", "conversation"])
async def test_a_request_that_came_before_and_is_looked_at_only_after_is_refused(
    client: "httpx.AsyncClient", key: "Minted", monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    assert (await say(client, key, "ana", "I moved to Porto.")).status_code == 202
    came, goes, meet = asyncio.Event(), asyncio.Event(), People.meet

    async def met_late(people: People, credential: Any, claim: Any) -> Any:
        came.set()
        await goes.wait()
        return await meet(people, credential, claim)

    monkeypatch.setattr(People, "meet", met_late)
    slow = asyncio.create_task(say(client, key, "ana", "I moved to Braga."))
    await came.wait()
    ana = {"handle_kind": "canonical_user", "handle": "ana"}
    wanted = {"subject": ana, "conversation": {"subject": ana, "conversation_id": "c1"}}
    ask = {what: wanted[what], "reason_code": "subject_request"}
    assert (await client.post("/v1/erasures", json=ask, headers=key.headers)).status_code == 202
    goes.set()
    late = await slow
    assert (late.status_code, late.json().get("code")) == (409, "subject_erased")
    assert (await say(client, key, "ana", "I moved to Faro.")).status_code == 202


@pytest.mark.parametrize("route", ["/v1/subjects", "/v1/agents/support"])
async def test_names_that_came_before_are_not_given_to_whoever_has_the_handle_after(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint", monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    key = await mint(scopes=("security", "operator", "profiles:write"))
    ana = {"handle_kind": "owner", "handle": "ana"}
    asked = {
        "/v1/subjects": {"handles": [ana], "names": ["Tiuri Fenstra"]},
        "/v1/agents/support": {"vendor": "v", "owner": "ana"},
    }[route]
    assert (await client.put(route, json=asked, headers=key.headers)).status_code == 200
    came, goes, subject = asyncio.Event(), asyncio.Event(), People.subject

    async def late(people: People, *handle: Any, make: bool) -> Any:
        if make:
            came.set()
            await goes.wait()
        return await subject(people, *handle, make=make)

    monkeypatch.setattr(People, "subject", late)
    slow = asyncio.create_task(client.put(route, json=asked, headers=key.headers))
    await came.wait()
    ask = {"subject": ana, "reason_code": "subject_request"}
    assert (await client.post("/v1/erasures", json=ask, headers=key.headers)).status_code == 202
    goes.set()
    answer = await slow
    assert (answer.status_code, answer.json().get("code")) == (409, "subject_erased")
    assert await rows(resources, "names", key.space) == []
    assert (await client.put(route, json=asked, headers=key.headers)).status_code == 200


async def test_an_end_user_in_anothers_log_is_recognised_as_well(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    spoken = {"X-End-User": "eve", "Idempotency-Key": "call-1"}
    assert (await say(client, key, "firm", "I am Eve.", **spoken)).status_code == 202
    body = {"subject": {"handle_kind": "end_user", "handle": "eve"}, "reason_code": "subject_request"}
    assert (await client.post("/v1/erasures", json=body, headers=key.headers)).status_code == 202
    assert (await say(client, key, "firm", "I am Eve.", **spoken)).status_code == 409
    assert (await say(client, key, "firm", "I am Eve.", **spoken | {"Idempotency-Key": "call-2"})).status_code == 202


async def test_idempotency_keys_are_kept_for_a_day_and_as_hmacs_only(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "Hello", **{"Idempotency-Key": "call-of-canary"})
    erasure = UUID((await erase(client, key, "ana")).json()["id"])
    kept = await resources.keys.pool.fetch("SELECT * FROM suppressed_calls WHERE erasure = $1", erasure)
    assert [len(row["digest"]) for row in kept] == [16]
    await resources.keys.pool.execute(
        "UPDATE suppressed_calls SET at = at - $2::interval WHERE erasure = $1", erasure, DAY
    )
    assert (await say(client, key, "ana", "Hello", **{"Idempotency-Key": "call-of-canary"})).status_code == 202
    await erasing.finish(resources)
    assert await resources.keys.pool.fetch("SELECT * FROM suppressed_calls WHERE erasure = $1", erasure) == []


DAY = timedelta(hours=24)


async def test_a_request_for_an_erasure_can_be_sent_again(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "ana", "Hello")
    again = {"Idempotency-Key": "erase-1"}
    answers = await asyncio.gather(*(erase(client, key, "ana", **again) for _ in range(8)))
    answers.append(await erase(client, key, "ana", **again))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await rows(resources, "erasures", key.space)) == 1
    assert (await erase(client, key, "ana")).status_code == 404
    assert (await erase(client, key, "bo", **again)).status_code == 404
    assert (await erase(client, key, "ana", **{"Idempotency-Key": "x" * 256})).status_code == 422
    named = UUID(answers[0].json()["id"])
    assert await resources.keys.pool.fetchval("SELECT applied_at IS NOT NULL FROM ledger WHERE id = $1", named)


async def test_another_process_learns_within_a_second_that_somebody_is_new(
    client: "httpx.AsyncClient", serving: "Serving", settings: "Settings", key: "Minted"
) -> None:
    async with serving(create_app(settings)) as other:
        for process in (client, other):
            await say(process, key, "ana", "I moved to Porto.")
        await erase(client, key, "ana")
        assert (await say(client, key, "ana", "I am new.")).status_code == 202

        async def turns_elsewhere() -> int:
            asks = {"agent": "support"}
            headers = key.headers | {"X-Canonical-User": "ana"}
            told = (await other.post("/v1/coverage/read", json=asks, headers=headers)).json()
            return sum(told["turns"].values()) if "turns" in told else -1

        async with asyncio.timeout(5):
            while await turns_elsewhere() < 1:  # noqa: ASYNC110 - the look has a second's own pace
                await asyncio.sleep(0.05)


async def test_an_acceptance_that_the_scheduler_overtakes_is_one_and_stays_in_the_ledger(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(client, key, "ana", "Hello")
    wish = Wish(key.space, "other", "key_test", subject=await subject_of(resources, key))
    monkeypatch.setattr(erasing, "_STUCK", 0.0)
    reached, overtaking, go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    real, prepare, mark = accepting.take_away, accepting.prepare, ledger.mark_applied

    async def slowly(*given: Any) -> dict[str, int]:
        reached.set()
        await go.wait()
        return await real(*given)

    async def prepared(*given: Any) -> None:
        await prepare(*given)
        if reached.is_set():
            overtaking.set()

    async def marked_late(*given: Any) -> None:
        if asyncio.current_task() is accepting_it:
            await asyncio.wait({finishing})
        await mark(*given)

    monkeypatch.setattr(ledger, "mark_applied", marked_late)
    monkeypatch.setattr(accepting, "take_away", slowly)
    monkeypatch.setattr(accepting, "prepare", prepared)
    accepting_it = asyncio.create_task(erasing.accept(resources, wish))
    await reached.wait()
    finishing = asyncio.create_task(erasing.finish(resources))
    await overtaking.wait()
    go.set()
    erasure, _ = await accepting_it
    await finishing
    assert await ledger.unfinished(resources.keys, 0) == []
    assert await resources.keys.pool.fetchval("SELECT applied_at IS NOT NULL FROM ledger WHERE id = $1", erasure)
    assert len(await rows(resources, "erasures", key.space)) == 1


async def test_whoever_is_confirmed_as_the_same_person_meanwhile_goes_too(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(client, key, "ana", "Hello")
    ana = await subject_of(resources, key)
    await say(client, key, "ana.work", "Hello")
    work = await subject_of(resources, key)
    await say(client, key, "bo", "Hello")
    bo = await subject_of(resources, key)
    real = ledger.write

    async def linked_then(*given: Any) -> None:
        await real(*given)
        async with resources.database.begin(key.space) as tx:
            await links.link(await driver(tx), key.space, ana, work, confirmed=True)
            await links.link(await driver(tx), key.space, ana, bo, confirmed=False)

    monkeypatch.setattr(ledger, "write", linked_then)
    await erasing.accept(resources, Wish(key.space, "other", "key_test", subject=ana))
    left = {row["id"] for row in await rows(resources, "subjects", key.space)}
    assert bo in left
    assert not left & {ana, work}
    (erasure,) = await rows(resources, "erasures", key.space)
    entry = await resources.keys.pool.fetchrow(
        "SELECT target::text AS target, (SELECT count(*) FROM suppressed WHERE erasure = l.id) AS handles"
        " FROM ledger l WHERE id = $1",
        erasure["id"],
    )
    assert all(one.hex in entry["target"] for one in (ana, work))
    assert entry["handles"] == 2
    assert erasure["unconfirmed"] in (1, "1")


async def test_same_name_of_another_kind_and_space_stays_byte_for_byte(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    other = await mint(scopes=("turns:write", "operator"), admin=True, allow_impersonation=True)
    await say(client, key, "ana", "I am Ana.")
    ana = await subject_of(resources, key)
    await say(client, key, "firm", "I am another Ana.", **{"X-End-User": "ana"})
    await say(client, other, "ana", "And I a third.")
    tables = ("subjects", "handles", "logs", "conversations", "turns")

    async def standing() -> list[tuple[Any, ...]]:
        found = [
            (table, row) for one in (key, other) for table in tables for row in await rows(resources, table, one.space)
        ]
        named = {"subjects": "id"}
        return [(table, *row) for table, row in found if row[named.get(table, "subject_id")] != ana]

    before = await standing()
    await erase(client, key, "ana")
    assert [row for row in await standing() if row[0] != "turns"] == [row for row in before if row[0] != "turns"]
    assert await standing() == before


async def test_nobody_is_erased_by_an_acceptance_that_found_nothing(resources: "Resources", key: "Minted") -> None:
    with pytest.raises(NothingThere):
        await erasing.accept(resources, Wish(key.space, "other", "key_test", subject=UUID(int=7)))
    assert await ledger.unfinished(resources.keys, 0) == []
    assert await rows(resources, "erasures", key.space) == []


def test_a_call_has_another_hmac_in_another_space() -> None:
    suppression = SealingKey(UUID(int=1), bytes(32))
    assert ledger.call_digest(suppression, 1, b"x") != ledger.call_digest(suppression, 2, b"x")
