"""Nobody reads or writes another's: every route of the document, with another space's key, forged headers, guessed ids."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from api.app import create_app
from intake import erasure as erasing
from intake.erasure import Wish
from models import policy as policies
from models import receipt as receipts
from models.api_key import Scope
from models.database import driver
from models.receipt import Receipt

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Remember

    from config.settings import Settings
    from jobs.resources import Resources

CANARY = "heliotrope"
OPEN = {"/healthz", "/readyz", "/metrics"}
FORGED = ("X-End-User", "X-Canonical-User", "X-Platform-User", "X-Channel-Sender")
_TABLES = (
    "notes",
    "note_versions",
    "proposals",
    "object_types",
    "states",
    "state_fields",
    "webhooks",
    "turns",
    "observations",
    "logs",
    "conversations",
    "handles",
    "names",
    "agents",
    "pseudonyms",
    "subjects",
    "exports",
    "erasures",
    "holds",
    "retention",
    "links",
)
_ALL = "SELECT * FROM {} WHERE space_id = $1 ORDER BY 1, 2"

NOTE = {
    "agent": "support",
    "kind": "tool_note",
    "title": "What the scheduler wants",
    "body": f"It wants {CANARY} in its header.",
    "tags": [CANARY],
}
STATE = {"agent": "support", "scope": {"kind": "conversation", "id": "c1"}}
STATE_TYPE = {
    "type": "support",
    "ownership": "agent",
    "fields": {"note": {"type": "string"}},
    "agent_state": {"scope": "conversation"},
}
# What each route is asked. A route that is not here fails the test: whoever adds one says how it is asked.
BODIES: dict[tuple[str, str], dict[str, Any] | None] = {
    ("post", "/v1/turns"): {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": "x"}]},
    ("post", "/v1/observations/read"): {"agent": "support"},
    ("post", "/v1/observations/search"): {"agent": "support", "query": CANARY},
    ("post", "/v1/observations/flush"): {"agent": "support"},
    ("post", "/v1/observations/restore"): {"agent": "support", "generation": 1},
    ("post", "/v1/coverage/read"): {"agent": "support"},
    ("post", "/v1/context"): {"agent": "support", "conversation_id": "c1", "token_budget": 500},
    ("get", "/v1/quarantine"): None,
    ("post", "/v1/quarantine/{record_id}/retry"): None,
    ("post", "/v1/exports"): {"subject": {"handle_kind": "canonical_user", "handle": "ana"}},
    ("get", "/v1/exports/{export_id}"): None,
    ("get", "/v1/exports/{export_id}/package"): None,
    ("post", "/v1/erasures"): {"subject": {"handle_kind": "canonical_user", "handle": "ana"}, "reason_code": "other"},
    ("get", "/v1/erasures/{erasure}"): None,
    ("get", "/v1/erasures/{erasure}/certificate"): None,
    ("get", "/v1/erasures/{erasure}/verify"): None,
    ("get", "/v1/receipts"): None,
    ("get", "/v1/receipts/checkpoint"): None,
    ("get", "/v1/receipts/key"): None,
    ("get", "/v1/receipts/{receipt}/proof"): None,
    ("get", "/v1/policies/retention"): None,
    ("put", "/v1/policies/retention"): {"turns": "400d"},
    ("post", "/v1/policies/retention/preview"): {"turns": "400d"},
    ("get", "/v1/policies/masking"): None,
    ("put", "/v1/policies/masking"): {"operators": {"EMAIL_ADDRESS": "hash"}},
    ("get", "/v1/features"): None,
    ("put", "/v1/features"): {"agent_state": True},
    ("put", "/v1/subjects"): {"handles": [{"handle_kind": "email", "handle": "ana@example.org"}]},
    ("get", "/v1/agents/{agent}"): None,
    ("put", "/v1/agents/{agent}"): {"vendor": "v1", "owner": "ana"},
    ("post", "/v1/profiles/lookup"): {"handle_kind": "canonical_user", "handle": "ana"},
    ("get", "/v1/profiles/{profile_id}"): None,
    ("put", "/v1/holds/{profile_id}"): None,
    ("get", "/v1/webhooks"): None,
    ("get", "/v1/holds"): None,
    ("get", "/v1/webhooks/{name}"): None,
    ("put", "/v1/webhooks/{name}"): {"url": "https://93.184.215.14/x", "events": ["export.ready"]},
    ("delete", "/v1/webhooks/{name}"): None,
    ("get", "/v1/webhooks/{name}/deliveries"): None,
    ("post", "/v1/webhooks/{name}/retry"): None,
    ("delete", "/v1/holds/{profile_id}"): None,
    ("get", "/v1/agent-memory/notes"): None,
    ("post", "/v1/agent-memory/notes"): NOTE | {"body": "It wants a header.", "tags": []},
    ("get", "/v1/agent-memory/notes/{note}"): None,
    ("patch", "/v1/agent-memory/notes/{note}"): {"agent": "support", "title": "Another title"},
    ("delete", "/v1/agent-memory/notes/{note}"): None,
    ("post", "/v1/agent-memory/notes/{note}/retire"): {"agent": "support"},
    ("post", "/v1/agent-memory/notes/{note}/release"): None,
    ("get", "/v1/agent-memory/notes/{note}/versions"): None,
    ("post", "/v1/agent-memory/search"): {"query": CANARY},
    ("get", "/v1/agent-memory/proposals"): None,
    ("get", "/v1/agent-memory/proposals/{proposal}"): None,
    ("post", "/v1/agent-memory/proposals/{proposal}/approve"): {},
    ("post", "/v1/agent-memory/proposals/{proposal}/reject"): {"reason_code": "other"},
    ("get", "/v1/agent-memory/export"): None,
    ("post", "/v1/agent-memory/distill"): {"agent": "support", "conversation_id": "c1"},
    ("get", "/v1/agent-memory/distill/{distillation}"): None,
    ("get", "/v1/agent-memory/block"): None,
    ("get", "/v1/agent-memory/task-section"): None,
    ("get", "/v1/object-types"): None,
    ("put", "/v1/object-types"): {"types": [STATE_TYPE]},
    ("put", "/v1/agent-state"): STATE | {"body": {"note": "x"}},
    ("post", "/v1/agent-state/read"): STATE,
    ("get", "/v1/profiles/{profile_id}/agent-state"): None,
    ("post", "/v1/keys"): {"scopes": ["memory:read"]},
    ("get", "/v1/keys"): None,
    ("delete", "/v1/keys/{key_id}"): None,
}
ROUTES = sorted(BODIES)
# Putting a webhook or an agent makes one of the caller's own space, whatever others call theirs.
_MAKES = {("put", "/v1/webhooks/{name}"), ("put", "/v1/agents/{agent}")}
BY_ID = [route for route in ROUTES if "{" in route[1] and route not in _MAKES]


@pytest.fixture
async def victim(mint: "Mint", remember: "Remember", client: "httpx.AsyncClient", resources: "Resources") -> "Minted":
    """A space with a person in it, about whom everything is kept that there is."""
    key = await mint(scopes=tuple(Scope), admin=True, allow_impersonation=True)
    said = BODIES["post", "/v1/turns"] or {}
    await client.post("/v1/turns", json=said, headers=key.headers | {"X-Canonical-User": "ana"})
    await client.post("/v1/turns", json=said, headers=key.headers)
    await remember(key, f"likes {CANARY}")
    await turn_on(resources, key)
    assert (await client.post("/v1/agent-memory/notes", json=NOTE, headers=key.headers)).status_code == 201
    for_all = NOTE | {"visibility": "space", "title": "Of all"}
    assert (await client.post("/v1/agent-memory/notes", json=for_all, headers=key.headers)).status_code == 202
    distil = BODIES["post", "/v1/agent-memory/distill"]
    assert (await client.post("/v1/agent-memory/distill", json=distil, headers=key.headers)).status_code == 202
    declared = await client.put("/v1/object-types", json={"types": [STATE_TYPE]}, headers=key.headers)
    assert declared.status_code == 200
    kept = await client.put("/v1/agent-state", json=STATE | {"body": {"note": CANARY}}, headers=key.headers)
    assert kept.json()["stored"] is True
    owned = BODIES["put", "/v1/agents/{agent}"]
    assert (await client.put("/v1/agents/victims", json=owned, headers=key.headers)).status_code == 200
    hook = BODIES["put", "/v1/webhooks/{name}"]
    assert (await client.put("/v1/webhooks/victims", json=hook, headers=key.headers)).status_code == 200
    async with resources.database.begin(key.space) as tx:
        await receipts.write(await driver(tx), Receipt(key.space, key.id, "test.done"))
    return key


@pytest.fixture
async def stranger(mint: "Mint", resources: "Resources") -> "Minted":
    """A key of another space that may do everything there, and may not speak for anybody."""
    key = await mint(scopes=tuple(Scope))
    await turn_on(resources, key)
    return key


async def turn_on(resources: "Resources", key: "Minted") -> None:
    """Whatever a space may switch on."""
    async with resources.database.begin(key.space) as tx:
        await policies.change_features(await driver(tx), key.space, {"agent_memory": True, "agent_state": True})


@pytest.fixture(scope="module")
def documented(settings: "Settings") -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """What the document says of each route."""
    paths = create_app(settings).openapi()["paths"]
    return {
        (method, path): said for path, methods in paths.items() for method, said in methods.items() if path not in OPEN
    }


async def ask(
    client: "httpx.AsyncClient", route: tuple[str, str], headers: Mapping[str, str], **ids: str
) -> "httpx.Response":
    method, path = route
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    return await client.request(method, path, json=BODIES[route], headers=headers)


async def everything(resources: "Resources", space: int) -> dict[str, list[Any]]:
    async with resources.database.begin(space) as tx:
        connection = await driver(tx)
        return {table: list(map(tuple, await connection.fetch(_ALL.format(table), space))) for table in _TABLES}


async def ids_of(resources: "Resources", victim: "Minted") -> dict[str, str]:
    """Real ids of the victim's, one for each name that a path has."""
    async with resources.database.begin(victim.space) as tx:
        connection = await driver(tx)
        receipt = await connection.fetchval("SELECT id FROM receipts WHERE space_id = $1 LIMIT 1", victim.space)
        proposal = await connection.fetchval("SELECT id FROM proposals WHERE space_id = $1 LIMIT 1", victim.space)
        distillation = await connection.fetchval(
            "SELECT id FROM distillations WHERE space_id = $1 LIMIT 1", victim.space
        )
        note = await connection.fetchval("SELECT id FROM notes WHERE space_id = $1 LIMIT 1", victim.space)
        subject = await connection.fetchval(
            "SELECT subject_id FROM conversations WHERE space_id = $1 ORDER BY id LIMIT 1", victim.space
        )
    erasure, _ = await erasing.accept(resources, Wish(victim.space, "other", victim.id, agent="nobody"))
    return {
        "record_id": "1",
        "name": "victims",
        "agent": "victims",
        "key_id": victim.id,
        "export_id": f"exp_{uuid4().hex}",
        "erasure": str(erasure),
        "receipt": receipts.opaque(receipt),
        "note": f"note_{note.hex}",
        "proposal": f"prop_{proposal.hex}",
        "distillation": f"dst_{distillation.hex}",
        "profile_id": f"sub_{subject.hex}",
    }


MADE_UP = {
    "record_id": str(2**62),
    "name": "made-up",
    "agent": "made-up",
    "key_id": f"key_{uuid4().hex}",
    "export_id": f"exp_{uuid4().hex}",
    "erasure": str(uuid4()),
    "receipt": f"rct_{uuid4().hex}",
    "note": f"note_{uuid4().hex}",
    "proposal": f"prop_{uuid4().hex}",
    "distillation": f"dst_{uuid4().hex}",
    "profile_id": f"sub_{uuid4().hex}",
}


def without_instance(answer: "httpx.Response") -> tuple[int, dict[str, Any]]:
    return answer.status_code, {name: said for name, said in answer.json().items() if name != "instance"}


def test_every_route_is_asked_here(documented: Mapping[tuple[str, str], Any]) -> None:
    assert set(documented) == set(BODIES)


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_without_a_key_or_its_scope_no_route_opens(
    client: "httpx.AsyncClient", documented: Mapping[tuple[str, str], Any], mint: "Mint", route: tuple[str, str]
) -> None:
    scope = documented[route]["security"][0]["bearer"][0]
    lacking = await mint(scopes=tuple(one for one in Scope if one != scope))
    assert (await ask(client, route, {}, **MADE_UP)).status_code == 401
    assert (await ask(client, route, {"Authorization": "Bearer at_made_up"}, **MADE_UP)).status_code == 401
    refused = await ask(client, route, lacking.headers, **MADE_UP)
    assert (refused.status_code, refused.json()["scope"]) == (403, scope)


@pytest.mark.parametrize("route", BY_ID, ids=" ".join)
async def test_a_real_id_of_another_space_is_answered_as_one_that_was_made_up(
    client: "httpx.AsyncClient", resources: "Resources", victim: "Minted", stranger: "Minted", route: tuple[str, str]
) -> None:
    real = await ids_of(resources, victim)
    before = await everything(resources, victim.space)
    foreign, made_up = (
        await ask(client, route, stranger.headers, **real),
        await ask(client, route, stranger.headers, **MADE_UP),
    )
    assert without_instance(foreign) == without_instance(made_up)
    assert foreign.status_code == 404 or foreign.json()["code"] == "packages_off"  # that is said before any look-up
    assert await everything(resources, victim.space) == before


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_forged_headers_open_nothing_and_change_nothing_of_the_victims(
    client: "httpx.AsyncClient",
    resources: "Resources",
    victim: "Minted",
    stranger: "Minted",
    mint: "Mint",
    route: tuple[str, str],
) -> None:
    real = await ids_of(resources, victim)
    before = await everything(resources, victim.space)
    forged = dict.fromkeys(FORGED, "ana") | {"X-Channel-Sender": "sms:ana"}
    answer = await ask(client, route, stranger.headers | forged, **real)
    assert answer.status_code < 500
    assert CANARY not in answer.text
    assert victim.owner.hex not in answer.text
    assert await everything(resources, victim.space) == before


@pytest.mark.parametrize("header", FORGED)
async def test_within_a_space_a_header_counts_only_for_a_key_that_may_impersonate(
    client: "httpx.AsyncClient",
    victim: "Minted",
    mint: "Mint",
    remember: "Remember",
    header: str,
    resources: "Resources",
) -> None:
    async with resources.database.begin(victim.space) as tx:
        name = await (await driver(tx)).fetchval("SELECT name FROM spaces WHERE id = $1", victim.space)
    for rights in ({}, {"admin": True}, {"allow_impersonation": True}):
        neighbour = await mint(name, scopes=("memory:read", "turns:write"), **rights)
        forged = neighbour.headers | {header: "sms:ana" if header == "X-Channel-Sender" else "ana"}
        answer = await ask(client, ("post", "/v1/observations/read"), forged)
        assert answer.status_code == 200
        assert CANARY not in answer.text
        assert answer.json()["memory_identity"]["ignored"] == [header]


async def test_row_level_security_holds_where_a_predicate_is_forgotten(
    resources: "Resources", victim: "Minted", stranger: "Minted"
) -> None:
    async with resources.database.begin(stranger.space) as tx:
        connection = await driver(tx)
        for table in _TABLES:
            seen = await connection.fetchval(f"SELECT count(*) FROM {table} WHERE space_id <> $1", stranger.space)  # noqa: S608 - of this test
            assert seen == 0, table
        assert await connection.execute("UPDATE turns SET role = 'user'") == "UPDATE 0"
        assert await connection.execute("DELETE FROM observations") == "DELETE 0"
    async with resources.database.pool.acquire() as connection:  # bound to no space at all
        for table in _TABLES:
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0, table  # noqa: S608 - of this test


async def test_two_people_recall_their_own_and_never_each_others(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint(scopes=("turns:write", "memory:read"), admin=True, allow_impersonation=True)
    words = {"ana": "cello", "bo": "kayak"}
    for person, word in words.items():
        turn = {"role": "user", "content": f"I practise with my {word} every Sunday."}
        body = {"agent": "support", "conversation_id": "same id", "turns": [turn]}
        assert (
            await client.post("/v1/turns", json=body, headers=key.headers | {"X-Canonical-User": person})
        ).status_code == 202
    async with resources.database.begin(key.space) as tx:
        logs = await (await driver(tx)).fetch("SELECT subject_id FROM logs WHERE space_id = $1", key.space)
    assert len({row["subject_id"] for row in logs}) == 2
    for person, word in words.items():
        other = words["bo" if person == "ana" else "ana"]
        headers = key.headers | {"X-Canonical-User": person}
        for path, asks in (
            ("/v1/observations/read", {}),
            ("/v1/observations/search", {"query": other}),
            ("/v1/coverage/read", {}),
        ):
            answer = await client.post(path, json={"agent": "support"} | asks, headers=headers)
            assert answer.status_code == 200
            assert other not in answer.text
        pending = (await client.post("/v1/coverage/read", json={"agent": "support"}, headers=headers)).json()
        assert pending["turns"]["pending"] == 1, word
