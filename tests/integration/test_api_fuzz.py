"""Whatever JSON comes, at whatever place: an answer or a refusal, never a fault of ours."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(["\x00", "\ud800", "\u202e", "support", "user", "c" * 600]))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
VALID: dict[str, dict[str, Any]] = {
    "turns": {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "hi", "id": "1"}]},
    "observations/read": {"agent": "support", "format": "json", "token_budget": 10},
    "observations/search": {"agent": "support", "query": "porto", "limit": 3},
    "observations/flush": {"agent": "support"},
    "observations/restore": {"agent": "support", "generation": 1},
    "coverage/read": {"agent": "support", "context": "corporate"},
    "context": {"agent": "support", "conversation_id": "c", "token_budget": 10, "no_memory": True},
}
MESSAGE_MEMBERS = ("role", "content", "id", "at", "name", "tool_calls", "tool_call_id", "refusal", "audio")


@pytest.fixture(scope="module")
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("turns:write", "memory:read", "operator"), admin=True, allow_impersonation=True)


async def never_breaks(client: "httpx.AsyncClient", key: "Minted", path: str, body: Any) -> None:
    raw = json.dumps(body).encode()  # NaN and infinities as Python writes them: no JSON
    answer = await client.post(f"/v1/{path}", content=raw, headers=key.headers)
    assert answer.status_code in {200, 202, 400, 404, 409, 413, 422}, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"


lenient = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("path", VALID)
@lenient
@given(data=st.data())
async def test_one_member_may_be_anything(
    client: "httpx.AsyncClient", key: "Minted", path: str, data: st.DataObject
) -> None:
    member = data.draw(st.sampled_from([*VALID[path], "metadata", "task_id", "context", "elsewhere"]))
    await never_breaks(client, key, path, VALID[path] | {member: data.draw(ANYTHING)})


@lenient
@given(members=st.dictionaries(st.sampled_from(MESSAGE_MEMBERS), ANYTHING, max_size=4))
async def test_a_message_may_be_anything(client: "httpx.AsyncClient", key: "Minted", members: dict[str, Any]) -> None:
    await never_breaks(client, key, "turns", VALID["turns"] | {"turns": [{"role": "user", "content": "x"} | members]})


@lenient
@given(handle=st.binary(max_size=40))
async def test_an_identity_header_may_be_anything(client: "httpx.AsyncClient", key: "Minted", handle: bytes) -> None:
    headers = [(name.encode(), value.encode()) for name, value in key.headers.items()]
    answer = await client.post("/v1/turns", json=VALID["turns"], headers=[*headers, (b"X-Canonical-User", handle)])
    assert answer.status_code in {202, 422}, answer.text
