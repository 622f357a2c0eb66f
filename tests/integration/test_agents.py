"""Whose an agent is: to another vendor's key it does not exist, and what would not agree is refused where it is said."""

from typing import TYPE_CHECKING, Any

import pytest

from api import auth
from cli import keys as cli_keys
from cli.failure import Failed
from models.database import driver

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

SCOPES = ("security", "turns:write", "memory:read", "operator")
TURN = {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": "My parcel is late"}]}


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=SCOPES, admin=True, allow_impersonation=True)


@pytest.fixture(autouse=True)
def asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential is looked up for every request, so that no test waits for the second to pass."""
    for span in ("_ASKED_AFTER", "_TRUSTED"):
        monkeypatch.setattr(auth, span, -1.0)


async def put(
    client: "httpx.AsyncClient", headers: dict[str, str], agent: str = "support", **said: Any
) -> "httpx.Response":
    return await client.put(f"/v1/agents/{agent}", json=said, headers=headers)


async def minted(client: "httpx.AsyncClient", key: "Minted", **wanted: Any) -> "httpx.Response":
    asked = {"name": "test", "scopes": ["security", "turns:write", "memory:read"], **wanted}
    return await client.post("/v1/keys", json=asked, headers=key.headers)


async def of_vendor(client: "httpx.AsyncClient", key: "Minted", vendor: str, **more: Any) -> dict[str, str]:
    answer = await minted(client, key, vendor=vendor, **more)
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['secret']}"}


async def test_a_registration_is_read_back_and_leaves_a_receipt(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    assert (await client.get("/v1/agents/support", headers=key.headers)).status_code == 404
    answer = await put(client, key.headers, vendor="v1", owner="ana", owner_employee="bea")
    assert answer.status_code == 200, answer.text
    assert answer.json().items() >= {"vendor": "v1", "owner": "ana", "owner_employee": "bea"}.items()
    assert (await client.get("/v1/agents/support", headers=key.headers)).json() == answer.json()
    again = await put(client, key.headers, vendor="v2")
    assert again.json() == {**answer.json(), "vendor": "v2", "owner": None, "owner_employee": None}
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        query = "SELECT count(*) FROM receipts WHERE space_id = $1 AND action = 'agent.registered'"
        assert await connection.fetchval(query, key.space) == 2
        rows = await connection.fetch("SELECT * FROM handles WHERE space_id = $1", key.space)
    assert "bea" not in repr([row["sealed"] for row in rows])


async def test_to_another_vendor_s_key_a_registered_agent_does_not_exist(
    client: "httpx.AsyncClient", key: "Minted"
) -> None:
    mine, theirs = [await of_vendor(client, key, vendor) for vendor in ("v1", "v2")]
    assert (await client.post("/v1/turns", json=TURN, headers=theirs)).status_code == 202  # nobody registered it
    await put(client, key.headers, vendor="v1")
    turns = [await client.post("/v1/turns", json=TURN, headers=headers) for headers in (mine, theirs, key.headers)]
    assert [answer.status_code for answer in turns] == [202, 404, 202]
    for method, path, said in (
        ("post", "/v1/observations/read", {"agent": "support"}),
        ("post", "/v1/coverage/read", {"agent": "support"}),
        ("put", "/v1/agents/support", {"vendor": "v2"}),
        ("get", "/v1/agents/support", None),
    ):
        answer = await client.request(method, path, json=said, headers=theirs)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    assert (
        await client.post("/v1/turns", json=TURN | {"agent": "sales", "conversation_id": "c2"}, headers=theirs)
    ).status_code == 202


async def test_a_vendor_s_key_registers_for_its_own_vendor_only(client: "httpx.AsyncClient", key: "Minted") -> None:
    theirs = await of_vendor(client, key, "v2")
    refused = await put(client, theirs, vendor="v1")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "vendor")
    assert (await put(client, theirs, vendor="v2")).status_code == 200
    bound = await of_vendor(client, key, "v2", agent="sales")
    assert (await put(client, bound, vendor="v2")).status_code == 404
    assert (await put(client, bound, agent="sales", vendor="v2")).status_code == 200


async def test_what_would_not_agree_is_refused_on_either_side(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key.headers, vendor="v1")
    refused = await minted(client, key, agent="support", vendor="v2")
    assert (refused.status_code, refused.json()["code"]) == (409, "vendor_differs")
    bound = await minted(client, key, agent="support", vendor="v1")
    refused = await put(client, key.headers, vendor="v2")
    assert (refused.status_code, refused.json()["code"]) == (409, "vendor_differs")
    assert (await client.get("/v1/agents/support", headers=key.headers)).json()["vendor"] == "v1"
    await client.delete(f"/v1/keys/{bound.json()['id']}", headers=key.headers)
    assert (await put(client, key.headers, vendor="v2")).status_code == 200
    async with resources.database.begin(key.space) as tx:
        space = await (await driver(tx)).fetchval("SELECT name FROM spaces WHERE id = $1", key.space)
    wanted = cli_keys.Wanted(
        space, "chat", "turns:write", "support", "v1", None, admin=False, allow_impersonation=False
    )
    with pytest.raises(Failed, match="another vendor"):
        await cli_keys.mint(resources, wanted)


async def test_an_erased_owner_s_agent_stays_its_vendor_s_and_leads_to_nobody(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await put(client, key.headers, vendor="v1", owner="ana", owner_employee="bea")
    wish = {"subject": {"handle_kind": "owner", "handle": "ana"}, "reason_code": "subject_request"}
    assert (await client.post("/v1/erasures", json=wish, headers=key.headers)).status_code == 202
    left = (await client.get("/v1/agents/support", headers=key.headers)).json()
    assert (left["vendor"], left["owner"], left["owner_employee"]) == ("v1", None, "bea")
    again = await put(client, key.headers, vendor="v1", owner="ana")
    assert again.json()["owner"] == "ana"


@pytest.mark.parametrize(
    ("agent", "said"),
    [("support", {}), ("support", {"vendor": ""}), ("support", {"vendor": "v 1"}), ("a b", {"vendor": "v1"})],
)
async def test_what_is_no_registration_is_refused(
    client: "httpx.AsyncClient", key: "Minted", agent: str, said: dict[str, Any]
) -> None:
    assert (await put(client, key.headers, agent, **said)).status_code == 422
