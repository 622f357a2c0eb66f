"""An agent's state as its reference tells it: versions, declared fields, the cap, masking, terms, and who is in it."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from gateways.key_store import KeyGone
from intake import erasure as erasing
from intake import state_scopes
from intake.erasure import Wish
from memory.state import ScopeKind
from models import state as states
from models.database import driver
from models.dataset import Target, see_expired
from models.registry import named

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

AGENT = "shopping_assistant"
ASSISTANT: dict[str, Any] = {
    "type": "shopping_assistant_state",
    "ownership": "agent",
    "fields": {"step": {"type": "enum"}, "offer": {"type": "string"}, "cart_note": {"type": "text", "pii": True}},
    "agent_state": {"scope": "conversation", "max_bytes": 16384, "write": "both", "over_cap": "keep_previous"},
    "retention": {"state": "30d", "cart_note": "7d"},
}
SCOPES = ("agent_state", "security", "profiles:read", "profiles:write", "turns:write", "memory:read", "operator")


class Code:
    """The agent's code: one key, one scope."""

    def __init__(self, client: "httpx.AsyncClient", key: "Minted", kind: str = "conversation") -> None:
        self.client, self.key = client, key
        self.scope = {"kind": kind, "id": f"c-{uuid4().hex}"}

    async def put(self, body: Mapping[str, Any], **besides: Any) -> "httpx.Response":
        said = {"scope": self.scope, "agent": AGENT, "body": body} | besides
        return await self.client.put("/v1/agent-state", json=said, headers=self.key.headers)

    async def get(self) -> dict[str, Any]:
        asked = {"scope": self.scope, "agent": AGENT}
        answer = await self.client.post("/v1/agent-state/read", json=asked, headers=self.key.headers)
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read

    async def declare(self, *types: Mapping[str, Any]) -> "httpx.Response":
        return await self.client.put("/v1/object-types", json={"types": list(types)}, headers=self.key.headers)


@pytest.fixture
async def code(client: "httpx.AsyncClient", mint: "Mint") -> Code:
    made = Code(client, await mint(scopes=SCOPES))
    features = await client.put("/v1/features", json={"agent_state": True}, headers=made.key.headers)
    assert features.status_code == 200
    assert (await made.declare(ASSISTANT)).status_code == 200
    return made


async def rows(resources: "Resources", code: Code, query: str, *values: Any) -> list[Any]:
    async with resources.database.begin(code.key.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        return await connection.fetch(query, code.key.space, *values)


def said(answer: "httpx.Response") -> tuple[Any, ...]:
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return told["stored"], told["version"], told["reason"]


def refusal(answer: "httpx.Response") -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_the_reference_s_example_line_by_line(code: Code) -> None:
    nothing = await code.get()
    assert (nothing["body"], nothing["version"], nothing["generation"]) == ({}, 0, None)
    assert said(await code.put({"step": "sizes", "offer": "familia-plus"})) == (True, 1, None)
    read = await code.get()
    assert read["body"] == {"step": "sizes", "offer": "familia-plus"}
    assert said(await code.put({"step": "checkout"}, mode="cas", if_version=read["version"])) == (True, 2, None)
    assert (await code.get())["body"] == {"step": "checkout"}
    await code.put({"offer": "familia-plus"})
    assert said(await code.put({"offer": {"$delete": True}})) == (True, 4, None)
    last = await code.get()
    assert (last["body"], last["version"]) == ({"step": "checkout"}, 4)
    assert last["generation"] == read["generation"]


async def test_a_stale_compare_and_swap_is_412_and_changes_nothing(code: Code) -> None:
    first = (await code.put({"step": "sizes"}, mode="cas", if_version=0)).json()
    for stale in ({"if_version": 0}, {"if_version": 2}, {"if_version": 1, "if_generation": uuid4().hex}):
        answer = await code.put({"step": "pay"}, mode="cas", **stale)
        assert refusal(answer) == (412, "agent_state_conflict")
        assert (answer.json()["version"], answer.json()["generation"]) == (1, first["generation"])
    assert refusal(await code.put({"step": "pay"}, if_version=3)) == (412, "agent_state_conflict")
    assert (await code.get())["body"] == {"step": "sizes"}


async def test_the_checks_come_in_their_order(code: Code, client: "httpx.AsyncClient") -> None:
    long, wrong = {"offer": "x" * 20_000}, {"step": 3}
    everything = long | wrong | {"shoes": 1}
    await code.put({"step": "sizes"})
    narrow = ASSISTANT | {"agent_state": ASSISTANT["agent_state"] | {"write": "merge_by_key"}}
    await code.declare(narrow)
    assert refusal(await code.put(everything, mode="cas", if_version=9)) == (422, "invalid")
    assert refusal(await code.put(everything, if_version=9)) == (412, "agent_state_conflict")
    assert said(await code.put(everything)) == (False, 1, "not_declared_field")
    answer = await code.put(long | wrong)
    assert (refusal(answer), answer.json()["errors"][0]["path"]) == ((422, "invalid"), "body.step")
    assert said(await code.put(long)) == (False, 1, "over_cap")
    assert (await code.get())["body"] == {"step": "sizes"}
    other = code.scope | {"kind": "task"}
    assert refusal(await code.put({}, scope=other)) == (422, "invalid")
    await client.put("/v1/features", json={"agent_state": False}, headers=code.key.headers)
    assert refusal(await code.put({}, scope=other)) == (403, "feature_off")


async def test_the_cap_is_exact_in_bytes_of_the_whole_s_compact_json(code: Code) -> None:
    small = ASSISTANT | {"agent_state": {"scope": "conversation", "max_bytes": 40}}
    await code.declare(small)
    whole = {"step": "é", "offer": ""}
    room = 40 - len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
    assert said(await code.put({"step": "é"})) == (True, 1, None)
    assert said(await code.put({"offer": "x" * (room + 1)})) == (False, 1, "over_cap")
    assert said(await code.put({"offer": "x" * room})) == (True, 2, None)


async def test_without_a_type_of_its_own_or_the_only_one_no_field_is_declared(code: Code) -> None:
    other = ASSISTANT | {"type": "other_state"}
    own = ASSISTANT | {"type": AGENT, "fields": {"mine": {"type": "number"}}, "retention": {}}
    for types, stored in (([], False), ([ASSISTANT, other], False), ([other, own, ASSISTANT], True)):
        assert (await code.declare(*types)).status_code == 200
        assert (await code.put({"mine": 1})).json()["stored"] is stored


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"retention": {"state": "181d"}}, "types[0].retention.state"),
        ({"retention": {"state": "23h"}}, "types[0].retention.state"),
        ({"retention": {"state": "5d", "cart_note": "7d"}}, "types[0].retention.cart_note"),
        ({"retention": {"shoes": "5d"}}, "types[0].retention"),
        ({"agent_state": None}, "types[0].agent_state"),
        ({"ownership": "company"}, "types[0].agent_state"),
        ({"agent_state": {"scope": "conversation", "max_bytes": 65537}}, "types[0].agent_state.max_bytes"),
        ({"agent_state": {"scope": "table"}}, "types[0].agent_state.scope"),
        ({"fields": {"step": {"type": "blob"}}}, "types[0].fields.step.type"),
        ({"fields": {"step": {"type": "text", "values": ["a"]}}, "retention": {}}, "types[0].fields.step.values"),
    ],
)
async def test_a_document_that_is_wrong_anywhere_is_refused_whole_with_the_path(
    code: Code, client: "httpx.AsyncClient", change: dict[str, Any], path: str
) -> None:
    before = (await client.get("/v1/object-types", headers=code.key.headers)).json()
    answer = await code.declare(ASSISTANT | change, ASSISTANT | {"type": "good"})
    assert (refusal(answer), answer.json()["errors"][0]["path"]) == ((422, "invalid"), path)
    assert (await client.get("/v1/object-types", headers=code.key.headers)).json() == before


async def test_personal_fields_are_masked_and_everything_is_sealed(code: Code, resources: "Resources") -> None:
    text = "Write to ana@example.org"
    await code.put({"cart_note": text, "offer": "kept as it is"})
    assert (await code.get())["body"] == {"cart_note": "Write to <EMAIL_ADDRESS>", "offer": "kept as it is"}
    stored = await rows(resources, code, "SELECT s::text, f::text FROM states s, state_fields f WHERE s.space_id = $1")
    assert len(stored) == 2
    assert not any(plain in str(stored) for plain in ("ana@", "kept as", code.scope["id"]))


async def test_writers_of_different_fields_never_lose_each_others_and_of_swaps_one_wins(code: Code) -> None:
    fields = {f"f{n}": {"type": "number"} for n in range(64)}
    await code.declare({**ASSISTANT, "fields": fields, "retention": {}})
    answers = await asyncio.gather(*(code.put({name: n}) for n, name in enumerate(fields)))
    assert sorted(one.json()["version"] for one in answers) == [*range(1, 65)]
    assert (await code.get())["body"] == {name: n for n, name in enumerate(fields)}
    swaps = await asyncio.gather(*(code.put({"f0": n}, mode="cas", if_version=64) for n in range(64)))
    assert sorted(one.status_code for one in swaps) == [200] + [412] * 63


async def test_an_expired_field_is_never_served_and_a_merge_carries_each_fields_own_time(
    code: Code, resources: "Resources"
) -> None:
    await code.put({"cart_note": "two of them", "step": "sizes"})
    ends = (await code.get())["expires_at"]
    await code.put({"step": "pay"})
    after = (await code.get())["expires_at"]
    assert after["cart_note"] == ends["cart_note"]
    assert after["step"] > ends["step"]
    await rows(
        resources, code, "UPDATE state_fields SET expires_at = now() WHERE space_id = $1 AND field = 'cart_note'"
    )
    read = await code.get()
    assert (read["body"], read["version"]) == ({"step": "pay"}, 2)
    assert said(await code.put({"offer": "x"})) == (True, 3, None)
    left = await rows(resources, code, "SELECT field FROM state_fields WHERE space_id = $1 ORDER BY 1")
    assert [row["field"] for row in left] == ["offer", "step"]


async def test_an_expired_state_is_as_never_written_and_its_former_life_does_not_pass(
    code: Code, resources: "Resources"
) -> None:
    first = (await code.put({"step": "sizes"})).json()
    await rows(resources, code, "UPDATE states SET expires_at = now() WHERE space_id = $1")
    assert (await code.get())["version"] == 0
    former = {"if_generation": first["generation"]}
    assert refusal(await code.put({"offer": "x"}, **former)) == (412, "agent_state_conflict")
    again = (await code.put({"offer": "x"}, mode="cas", if_version=0)).json()
    assert (again["version"], again["generation"] == first["generation"]) == (1, False)
    assert (await code.get())["body"] == {"offer": "x"}
    stale = await code.put({"step": "pay"}, mode="cas", if_version=1, **former)
    assert refusal(stale) == (412, "agent_state_conflict")


async def test_the_sweep_takes_expired_fields_and_states(code: Code, resources: "Resources") -> None:
    await code.put({"cart_note": "a", "step": "b"})
    await rows(
        resources, code, "UPDATE state_fields SET expires_at = now() WHERE space_id = $1 AND field = 'cart_note'"
    )
    assert await _swept(resources, code) == 1
    assert [
        row["field"] for row in await rows(resources, code, "SELECT field FROM state_fields WHERE space_id = $1")
    ] == ["step"]
    await rows(resources, code, "UPDATE states SET expires_at = now() WHERE space_id = $1")
    assert await _swept(resources, code) == 1
    assert await rows(resources, code, "SELECT FROM state_fields WHERE space_id = $1") == []


async def _swept(resources: "Resources", code: Code) -> int:
    async with resources.database.begin(code.key.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        return await named("agent_states").expire(connection, code.key.space, 100)


async def test_a_shorter_term_holds_at_once_for_what_is_stored(code: Code) -> None:
    await code.put({"step": "a", "cart_note": "b"})
    before = (await code.get())["expires_at"]
    await code.declare(ASSISTANT | {"retention": {"state": "2d", "cart_note": "1h"}})
    after = (await code.get())["expires_at"]
    spans = {name: _instant(before[name]) - _instant(after[name]) for name in before}
    assert spans == {"step": timedelta(days=28), "cart_note": timedelta(days=7) - timedelta(hours=1)}


def _instant(told: str) -> datetime:
    return datetime.fromisoformat(told)


async def test_a_state_without_a_person_is_sealed_anew_once_it_is_known_whose_it_is(
    code: Code, resources: "Resources"
) -> None:
    await code.put({"step": "a"})
    await code.put({"offer": "b"}, subject={"handle_kind": "email", "handle": "ana@example.org"})
    (row,) = await rows(resources, code, "SELECT key_id, subjects FROM states WHERE space_id = $1")
    assert row["subjects"] == [row["key_id"]]
    assert (await code.get())["body"] == {"step": "a", "offer": "b"}


async def test_the_erasure_of_whom_it_is_about_takes_it_and_a_late_write_brings_nothing_back(
    code: Code, resources: "Resources", client: "httpx.AsyncClient"
) -> None:
    ana = {"handle_kind": "email", "handle": "ana@example.org"}
    before = (await code.put({"step": "a"}, subject=ana)).json()
    written = datetime.now(UTC).isoformat()
    whose = (await client.post("/v1/profiles/lookup", json=ana, headers=code.key.headers)).json()["profile_id"]
    shown = await client.get(f"/v1/profiles/{whose}/agent-state", headers=code.key.headers)
    assert [(one["version"], one["bytes"]) for one in shown.json()["states"]] == [(1, len('{"step":"a"}'))]
    await erasing.accept(resources, Wish(code.key.space, "other", "test", subject=UUID(whose.removeprefix("sub_"))))
    assert (await code.get())["version"] == 0
    for late in ({"subject": ana}, {}):
        assert refusal(await code.put({"step": "b"}, written_at=written, **late)) == (409, "subject_erased")
    former = await code.put({"step": "b"}, if_version=1, if_generation=before["generation"])
    assert refusal(former) == (412, "agent_state_conflict")
    anew = (await code.put({"step": "c"}, mode="cas", if_version=0, subject=ana)).json()
    assert anew["version"] == 1
    assert anew["generation"] != before["generation"]


async def test_the_erasure_of_a_conversation_takes_the_states_of_its_id(
    code: Code, resources: "Resources", client: "httpx.AsyncClient"
) -> None:
    await code.put({"step": "before its first turn"})
    said_there = {"agent": AGENT, "conversation_id": code.scope["id"], "turns": [{"role": "user", "content": "hi"}]}
    assert (await client.post("/v1/turns", json=said_there, headers=code.key.headers)).status_code == 202
    (row,) = await rows(resources, code, "SELECT id FROM conversations WHERE space_id = $1")
    (state,) = await rows(resources, code, "SELECT key_id FROM states WHERE space_id = $1")
    await erasing.accept(resources, Wish(code.key.space, "other", "test", conversation=row["id"]))
    assert (await code.get())["version"] == 0
    with pytest.raises(KeyGone):
        await resources.keys.key(state["key_id"])
    late = await code.put({"step": "b"}, written_at="2026-01-01T00:00:00Z")
    assert refusal(late) == (409, "subject_erased")


async def test_a_key_is_no_customer(code: Code) -> None:
    answer = await code.put({"step": "a"}, subject={"handle_kind": "key", "handle": "key_x"})
    assert refusal(answer) == (422, "invalid")


async def test_a_conversation_begun_is_known_with_its_owner_and_is_exported_by_declared_field(
    code: Code, resources: "Resources", client: "httpx.AsyncClient"
) -> None:
    said_there = {"agent": AGENT, "conversation_id": code.scope["id"], "turns": [{"role": "user", "content": "hi"}]}
    await client.post("/v1/turns", json=said_there, headers=code.key.headers)
    await code.put({"step": "a", "offer": "b"})
    owner = code.key.owner
    keys = {owner: await resources.keys.key(owner)}
    async with resources.database.begin(code.key.space) as tx:
        target = Target(code.key.space, (owner,))
        found = [row async for row in named("agent_states").export(await driver(tx), target, keys)]
    assert [(one["scope"], one["fields"]) for one in found] == [("conversation", {"offer": "b", "step": "a"})]


@pytest.mark.parametrize(
    ("kind", "named_by"),
    [("object", "order:42"), ("object", "a::b"), ("subject", "ana"), ("subject", "key:x"), ("task", "")],
)
async def test_a_scope_that_names_nothing_is_refused(code: Code, kind: str, named_by: str) -> None:
    await code.declare(ASSISTANT | {"agent_state": {"scope": kind}})
    assert refusal(await code.put({}, scope={"kind": kind, "id": named_by})) == (422, "invalid")


async def test_two_spellings_of_a_handle_name_one_state_of_that_person(code: Code, resources: "Resources") -> None:
    await code.declare(ASSISTANT | {"agent_state": {"scope": "subject"}})
    code.scope = {"kind": "subject", "id": "email:Ana@Example.org"}
    await code.put({"step": "a"})
    code.scope = {"kind": "subject", "id": "email:ana@example.org"}
    assert (await code.get())["body"] == {"step": "a"}
    (row,) = await rows(resources, code, "SELECT key_id, subjects FROM states WHERE space_id = $1")
    assert row["subjects"] == [row["key_id"]]


async def test_another_agents_key_and_another_space_see_nothing_of_it(
    code: Code, client: "httpx.AsyncClient", mint: "Mint"
) -> None:
    await code.put({"step": "a"})
    other = Code(client, await mint(scopes=SCOPES))
    other.scope = code.scope
    await client.put("/v1/features", json={"agent_state": True}, headers=other.key.headers)
    assert (await other.get())["version"] == 0
    bound = await mint(scopes=SCOPES, agent="another")
    asked = {"scope": code.scope, "agent": AGENT}
    answer = await client.post("/v1/agent-state/read", json=asked, headers=bound.headers)
    assert answer.status_code == 404


async def test_a_hold_keeps_what_has_expired_from_the_sweep(code: Code, resources: "Resources") -> None:
    await code.declare(ASSISTANT | {"agent_state": {"scope": "subject"}})
    code.scope = {"kind": "subject", "id": "email:ana@example.org"}
    await code.put({"step": "a"})
    (row,) = await rows(resources, code, "SELECT subjects[1] AS whose FROM states WHERE space_id = $1")
    held = "INSERT INTO holds (space_id, subject_id, named, actor) VALUES ($1, $2, $2, 'test')"
    await rows(resources, code, held, row["whose"])
    await rows(resources, code, "UPDATE states SET expires_at = now() WHERE space_id = $1")
    assert await _swept(resources, code) == 0
    assert (await code.get())["version"] == 0
    assert len(await rows(resources, code, "SELECT FROM states WHERE space_id = $1")) == 1


async def test_a_scope_key_is_rotated_and_no_state_or_erasure_is_lost(code: Code, resources: "Resources") -> None:
    await code.put({"step": "a"})
    (before,) = await rows(resources, code, "SELECT scope FROM states WHERE space_id = $1")
    await state_scopes.rotate(resources, code.key.space, "test")
    assert (await code.get())["body"] == {"step": "a"}
    assert said(await code.put({"offer": "b"})) == (True, 2, None)
    (after,) = await rows(resources, code, "SELECT scope FROM states WHERE space_id = $1")
    assert after["scope"] != before["scope"]
    await rows(resources, code, "INSERT INTO erased_states (space_id, scope) VALUES ($1, $2)", before["scope"])
    late = await code.put({"step": "c"}, written_at="2026-01-01T00:00:00Z")
    assert refusal(late) == (409, "subject_erased")


async def test_a_write_that_began_before_a_rotation_goes_by_the_new_key(
    code: Code, resources: "Resources", monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, rotated = states.lock, []

    async def rotating(*of: Any) -> datetime:
        if not rotated:
            rotated.append(await state_scopes.rotate(resources, code.key.space, "test"))
        return await lock(*of)

    monkeypatch.setattr(states, "lock", rotating)
    assert said(await code.put({"step": "a"})) == (True, 1, None)
    (row,) = await rows(resources, code, "SELECT scope FROM states WHERE space_id = $1")
    key = await resources.keys.key(rotated[0])
    assert row["scope"] == states.scope_digest(key, ScopeKind.CONVERSATION, code.scope["id"])


async def test_it_enters_no_context_and_no_observation(code: Code, client: "httpx.AsyncClient") -> None:
    await code.put({"offer": "heliotrope", "step": "heliotrope"})
    there = {"agent": AGENT, "conversation_id": code.scope["id"]}
    await client.post(
        "/v1/turns", json=there | {"turns": [{"role": "user", "content": "hi"}]}, headers=code.key.headers
    )
    for path, asks in (
        ("/v1/context", {"conversation_id": code.scope["id"], "token_budget": 900}),
        ("/v1/observations/read", {}),
        ("/v1/observations/search", {"query": "heliotrope"}),
    ):
        answer = await client.post(path, json={"agent": AGENT} | asks, headers=code.key.headers)
        assert answer.status_code == 200
        assert "heliotrope" not in answer.text.replace('"query":"heliotrope"', "")
    whose = await client.get(f"/v1/profiles/sub_{code.key.owner.hex}/agent-state", headers=code.key.headers)
    assert "heliotrope" not in whose.text
