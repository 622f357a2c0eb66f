"""Keys over HTTP: the secret once, no more power than whoever mints has, and an end that every process sees."""

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from api.app import create_app
from intake import erasure as erasing
from intake import keys as minting
from intake.erasure import Wish
from intake.identity import People
from intake.keys import MinterRevoked, OwnerErased, ReviewsItself, Wanted
from models import api_key
from models.api_key import Scope
from models.database import driver
from models.subject import HandleKind
from privacy.hashing import api_secret_digest

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Serving

    from config.settings import Settings
    from jobs.resources import Resources


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("security", "receipts:read"))


@pytest.fixture
async def admin(mint: "Mint") -> "Minted":
    return await mint(scopes=("security",), admin=True)


async def minted(client: "httpx.AsyncClient", key: "Minted", **asked: Any) -> dict[str, Any]:
    answer = await client.post("/v1/keys", json={"scopes": ["memory:read"]} | asked, headers=key.headers)
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def refused(client: "httpx.AsyncClient", key: "Minted", **asked: Any) -> tuple[int, str]:
    answer = await client.post("/v1/keys", json={"scopes": ["memory:read"]} | asked, headers=key.headers)
    return answer.status_code, answer.json()["code"]


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_a_minted_key_opens_its_scopes_and_is_listed_without_its_secret(
    client: "httpx.AsyncClient", key: "Minted"
) -> None:
    answer = await client.post(
        "/v1/keys", json={"name": "chat", "scopes": ["memory:read", "memory:read"], "vendor": "v1"}, headers=key.headers
    )
    assert answer.headers["cache-control"] == "no-store"
    new = answer.json()
    assert new["secret"].startswith("at_")
    read = await client.post("/v1/observations/read", json={"agent": "support"}, headers=bearing(new["secret"]))
    assert read.status_code == 200
    assert (await client.get("/v1/keys", headers=bearing(new["secret"]))).json()["scope"] == "security"
    listed = await client.get("/v1/keys", headers=key.headers)
    assert new["secret"] not in listed.text
    (one,) = [one for one in listed.json()["keys"] if one["id"] == new["id"]]
    assert (one["name"], one["scopes"], one["vendor"], one["owner_kind"]) == ("chat", ["memory:read"], "v1", "key")
    assert one["revoked_at"] is None


async def test_only_the_secrets_hash_is_stored(
    client: "httpx.AsyncClient", key: "Minted", resources: "Resources"
) -> None:
    new = await minted(client, key)
    async with resources.database.begin(key.space) as tx:
        row = await (await driver(tx)).fetchrow("SELECT * FROM api_keys WHERE id = $1", new["id"])
    assert row["secret_digest"] == api_secret_digest(new["secret"])
    assert new["secret"] not in str(dict(row))


async def test_minting_and_revoking_leave_receipts_by_the_key_that_did_it(
    client: "httpx.AsyncClient", key: "Minted"
) -> None:
    new = await minted(client, key, scopes=["turns:write"])
    assert (await client.delete(f"/v1/keys/{new['id']}", headers=key.headers)).status_code == 204
    told = (await client.get("/v1/receipts", headers=key.headers)).json()["receipts"]
    assert [(one["actor"], one["action"], one["ids"]) for one in told] == [
        (key.id, "key.minted", {"key": new["id"], "scopes": ["turns:write"]}),
        (key.id, "key.revoked", {"key": new["id"]}),
    ]
    assert new["secret"] not in str(told)


async def test_a_refused_key_leaves_neither_key_nor_receipt(client: "httpx.AsyncClient", key: "Minted") -> None:
    assert await refused(client, key, admin=True) == (403, "admin_needed")
    assert (await client.get("/v1/receipts", headers=key.headers)).json()["receipts"] == []
    assert [one["id"] for one in (await client.get("/v1/keys", headers=key.headers)).json()["keys"]] == [key.id]


@pytest.mark.parametrize("asked", [{"admin": True}, {"allow_impersonation": True}, {"owner": "ana"}])
async def test_what_speaks_for_others_is_minted_by_an_admins_key_alone(
    client: "httpx.AsyncClient", key: "Minted", admin: "Minted", asked: dict[str, Any]
) -> None:
    assert await refused(client, key, **asked) == (403, "admin_needed")
    new = await minted(client, admin, **asked)
    (one,) = [
        one for one in (await client.get("/v1/keys", headers=admin.headers)).json()["keys"] if one["id"] == new["id"]
    ]
    assert one["owner_kind"] == ("owner" if "owner" in asked else "key")
    assert one["admin"] == asked.get("admin", False)
    assert one["allow_impersonation"] == asked.get("allow_impersonation", False)


async def test_whether_an_owner_is_known_is_not_told_by_the_refusal(client: "httpx.AsyncClient", mint: "Mint") -> None:
    anas = await mint("owners-apart", scopes=("security",), owner="ana")
    await mint("owners-apart", owner="bo")
    assert await refused(client, anas, owner="bo") == (403, "admin_needed")
    assert await refused(client, anas, owner="nobody-of-that-name") == (403, "admin_needed")


async def test_a_key_mints_further_keys_of_its_own_owner(client: "httpx.AsyncClient", mint: "Mint") -> None:
    anas = await mint(scopes=("security",), owner="ana")
    await minted(client, anas, owner="ana")
    listed = (await client.get("/v1/keys", headers=anas.headers)).json()["keys"]
    assert {one["owner"] for one in listed} == {f"sub_{anas.owner.hex}"}


async def test_a_key_without_the_scope_that_it_mints_still_mints_it(client: "httpx.AsyncClient", key: "Minted") -> None:
    new = await minted(client, key, scopes=list(Scope))
    assert (await client.get("/v1/webhooks", headers=bearing(new["secret"]))).status_code == 200


async def test_a_key_of_one_agent_has_nothing_to_do_with_keys(
    client: "httpx.AsyncClient", mint: "Mint", key: "Minted"
) -> None:
    agents = await mint(scopes=("security",), agent="support", admin=True)
    for method, path in (("GET", "/v1/keys"), ("POST", "/v1/keys"), ("DELETE", f"/v1/keys/{agents.id}")):
        answer = await client.request(
            method, path, json={"scopes": ["memory:read"]} if method == "POST" else None, headers=agents.headers
        )
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_no_key_of_an_agent_reviews_what_agents_propose() -> None:
    with pytest.raises(ReviewsItself):
        Wanted("n", (Scope.AGENT_MEMORY_REVIEW,), agent="support")


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["turns:read"]}, "scopes[0]"),
        ({"scopes": ["agent_memory:review"], "agent": "support"}, "scopes"),
        ({"name": "x" * 201}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "safe\u202etxt"}, "name"),
        ({"owner": " "}, "owner"),
        ({"owner": "ana "}, "owner"),
        ({"owner": "\ud800"}, "owner"),
        ({"agent": "no spaces"}, "agent"),
        ({"admin": "yes"}, "admin"),
        ({"role": "admin"}, "role"),
    ],
)
async def test_what_is_no_key_is_refused_where_it_is_wrong(
    client: "httpx.AsyncClient", admin: "Minted", asked: dict[str, Any], path: str
) -> None:
    body = json.dumps({"scopes": ["memory:read"]} | asked)
    answer = await client.post("/v1/keys", content=body, headers=admin.headers)
    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (422, [path])


async def test_the_list_comes_in_pages_that_hold_every_key_once(client: "httpx.AsyncClient", key: "Minted") -> None:
    made = [key.id, *[(await minted(client, key))["id"] for _ in range(4)]]
    found: list[str] = []
    after = None
    while True:
        query = {"limit": "2"} | ({"after": after} if after else {})
        page = (await client.get("/v1/keys", params=query, headers=key.headers)).json()
        found += [one["id"] for one in page["keys"]]
        after = page["next"]
        if after is None:
            break
    assert found == made


async def test_another_spaces_keys_are_neither_listed_nor_revoked_nor_paged_from(
    client: "httpx.AsyncClient", key: "Minted", mint: "Mint"
) -> None:
    theirs = await mint(scopes=("security",))
    assert [one["id"] for one in (await client.get("/v1/keys", headers=key.headers)).json()["keys"]] == [key.id]
    made_up = f"key_{uuid4().hex[:12]}"
    for key_id in (theirs.id, made_up):
        assert (await client.delete(f"/v1/keys/{key_id}", headers=key.headers)).status_code == 404
        assert (await client.get("/v1/keys", params={"after": key_id}, headers=key.headers)).status_code == 404
    assert (await client.get("/v1/keys", headers=theirs.headers)).status_code == 200


async def test_a_revoked_key_opens_nothing_within_a_second_in_any_process(
    client: "httpx.AsyncClient", key: "Minted", serving: "Serving", settings: "Settings"
) -> None:
    new = await minted(client, key, scopes=["security"])
    async with serving(create_app(settings)) as other:
        for process in (client, other):
            assert (await process.get("/v1/keys", headers=bearing(new["secret"]))).status_code == 200
        assert (await client.delete(f"/v1/keys/{new['id']}", headers=key.headers)).status_code == 204
        async with asyncio.timeout(1.0):
            for process in (client, other):
                while (await process.get("/v1/keys", headers=bearing(new["secret"]))).is_success:
                    continue
            assert (await process.get("/v1/keys", headers=bearing(new["secret"]))).status_code == 401
    again = await client.delete(f"/v1/keys/{new['id']}", headers=key.headers)
    assert again.status_code == 404
    listed = (await client.get("/v1/keys", headers=key.headers)).json()["keys"]
    assert [one["id"] for one in listed if one["revoked_at"]] == [new["id"]]


async def test_a_key_that_is_revoked_while_it_asks_mints_nothing(key: "Minted", resources: "Resources") -> None:
    credential = await api_key.credential(resources.database.pool, api_secret_digest(key.secret))
    assert credential is not None
    assert await minting.revoke(resources.database, minting.by_key(credential), key.id)
    people = People(resources.database, resources.keys)
    with pytest.raises(MinterRevoked):
        await minting.mint(resources.database, people, minting.by_key(credential), Wanted("n", (Scope.MEMORY_READ,)))
    async with resources.database.begin(key.space) as tx:
        assert len(await api_key.listed(await driver(tx), key.space)) == 1


async def test_a_key_for_whom_an_erasure_took_meanwhile_is_not_made(admin: "Minted", resources: "Resources") -> None:
    credential = await api_key.credential(resources.database.pool, api_secret_digest(admin.secret))
    assert credential is not None
    people = People(resources.database, resources.keys)  # it still knows whom another process erases
    minter, wanted = minting.by_key(credential), Wanted("n", (Scope.MEMORY_READ,), owner="ana")
    first = await minting.mint(resources.database, people, minter, wanted)
    ana = await people.subject(admin.space, admin.lookup_key, (HandleKind.OWNER, "ana"), make=False)
    await erasing.accept(resources, Wish(admin.space, "other", admin.id, subject=ana))
    with pytest.raises(OwnerErased):
        await minting.mint(resources.database, people, minter, wanted)
    later = await minting.mint(resources.database, people, minter, wanted)
    async with resources.database.begin(admin.space) as tx:
        rows = {row["id"]: row for row in await api_key.listed(await driver(tx), admin.space)}
    assert rows[first.id]["revoked_at"] is not None
    assert rows[later.id]["revoked_at"] is None
    assert rows[later.id]["owner_subject"] != rows[first.id]["owner_subject"]
