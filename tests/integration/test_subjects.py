"""Handles that are one person are exported and erased as one; what nobody confirmed is listed, and not followed."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from models import subject as subjects
from models.database import driver

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

SCOPES = ("turns:write", "profiles:read", "profiles:write", "operator")


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=SCOPES, admin=True, allow_impersonation=True)


async def link(client: "httpx.AsyncClient", key: "Minted", *handles: tuple[str, str, bool]) -> dict[str, Any]:
    said = [{"handle_kind": kind, "handle": handle, "confirmed": sure} for kind, handle, sure in handles]
    answer = await client.put("/v1/subjects", json={"handles": said}, headers=key.headers)
    assert answer.status_code == 200, answer.text
    linked: dict[str, Any] = answer.json()
    return linked


async def look_up(client: "httpx.AsyncClient", key: "Minted", kind: str, handle: str) -> "httpx.Response":
    said = {"handle_kind": kind, "handle": handle}
    return await client.post("/v1/profiles/lookup", json=said, headers=key.headers)


async def test_the_closure_follows_confirmed_links_and_no_others(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await link(client, key, ("email", "ana@example.org", True), ("canonical_user", "ana", True))
    await link(client, key, ("canonical_user", "ana", True), ("account", "77", True))
    linked = await link(client, key, ("account", "77", True), ("phone", "+351912345678", False))
    assert (linked["confirmed"], linked["unconfirmed"]) == (3, 1)
    other = (await look_up(client, key, "phone", "+351912345678")).json()["profile_id"]
    for kind, handle in (("email", "ana@example.org"), ("canonical_user", "ana"), ("account", "77")):
        found = (await look_up(client, key, kind, handle)).json()["profile_id"]
        async with resources.database.begin(key.space) as tx:
            person = await subjects.closure(await driver(tx), key.space, UUID(found.removeprefix("sub_")))
        assert len(person) == 3
        assert UUID(other.removeprefix("sub_")) not in person


async def test_a_profile_counts_all_of_the_person_and_shows_no_text(client: "httpx.AsyncClient", key: "Minted") -> None:
    for person in ("ana", "ana at home"):
        turn = {"role": "user", "content": "I practise with my cello."}
        body = {"agent": "support", "conversation_id": "c1", "turns": [turn]}
        await client.post("/v1/turns", json=body, headers=key.headers | {"X-Canonical-User": person})
    linked = await link(client, key, ("canonical_user", "ana", True), ("canonical_user", "ana at home", True))
    answer = await client.get(f"/v1/profiles/{linked['profile_id']}", headers=key.headers)
    assert (answer.json()["counts"]["turns"], answer.json()["counts"]["handles"]) == (2, 2)
    assert answer.json()["last_turn_at"] is not None
    assert not {"cello", "home"} & set(answer.text.replace('"', " ").split())


async def test_an_erasure_takes_the_whole_person_and_says_what_it_did_not_follow(
    client: "httpx.AsyncClient", key: "Minted"
) -> None:
    await link(
        client,
        key,
        ("email", "ana@example.org", True),
        ("canonical_user", "ana", True),
        ("phone", "+351912345678", False),
    )
    wish = {"subject": {"handle_kind": "canonical_user", "handle": "ana"}, "reason_code": "subject_request"}
    accepted = await client.post("/v1/erasures", json=wish, headers=key.headers)
    assert accepted.status_code == 202
    erasure = (await client.get(f"/v1/erasures/{accepted.json()['id']}", headers=key.headers)).json()
    assert erasure["unconfirmed"] == 1
    assert (await look_up(client, key, "email", "ana@example.org")).status_code == 404
    assert (await look_up(client, key, "phone", "+351912345678")).status_code == 200
    again = await link(client, key, ("email", "ana@example.org", True))
    assert (again["confirmed"], again["unconfirmed"]) == (1, 0)


async def test_a_key_is_nobodys_handle_to_link(client: "httpx.AsyncClient", key: "Minted") -> None:
    said = {"handles": [{"handle_kind": "key", "handle": key.id}]}
    assert (await client.put("/v1/subjects", json=said, headers=key.headers)).status_code == 422
