"""What is past its term is served by no route from that very instant, is swept soon after, and never comes back."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from gateways import signing
from jobs import expire as job
from jobs.letters import expire_letter
from models import retention, seal, work
from models.database import driver
from models.dataset import see_expired
from models.registry import DATA_SETS

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Remember

    from jobs.resources import Resources

CANARY = "heliotrope"
# A body for every route that reads memory; a new route must be put here, or the test below fails.
READING: dict[str, dict[str, Any]] = {
    "/v1/observations/read": {},
    "/v1/observations/search": {"query": CANARY},
    "/v1/observations/flush": {},
    "/v1/coverage/read": {},
    "/v1/context": {"conversation_id": "c1", "token_budget": 500},
}
SERVES = ("/v1/observations/read", "/v1/observations/search", "/v1/context")


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("turns:write", "memory:read", "operator", "receipts:read"))


async def execute(resources: "Resources", key: "Minted", query: str, *values: Any) -> Any:
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        return await connection.fetch(query, *values)


async def terms(client: "httpx.AsyncClient", key: "Minted", **said: str) -> "httpx.Response":
    return await client.put("/v1/policies/retention", json=said, headers=key.headers)


async def ask(client: "httpx.AsyncClient", key: "Minted", path: str) -> "httpx.Response":
    return await client.post(path, json={"agent": "support"} | READING[path], headers=key.headers)


async def say(client: "httpx.AsyncClient", key: "Minted", *texts: str) -> None:
    turns = [{"role": "user", "content": text} for text in texts]
    body = {"agent": "support", "conversation_id": "c1", "turns": turns}
    assert (await client.post("/v1/turns", json=body, headers=key.headers)).status_code == 202


async def sweep(resources: "Resources", key: "Minted") -> dict[str, int]:
    """What the job deletes in a space, batch by batch."""
    gone: dict[str, int] = {}
    for data_set in DATA_SETS:
        async with resources.database.begin(key.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            while rows := await data_set.expire(connection, key.space, 2):
                gone[data_set.name] = gone.get(data_set.name, 0) + rows
    return gone


async def test_every_reading_route_is_known_here(client: "httpx.AsyncClient") -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    reading = {
        path
        for path, methods in paths.items()
        for said in methods.values()
        if {"bearer": ["memory:read"]} in said.get("security", [])
    }
    assert reading == set(READING)


@pytest.mark.parametrize("path", READING)
async def test_no_route_serves_what_is_past_its_term(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", remember: "Remember", path: str
) -> None:
    await remember(key, f"likes {CANARY}")
    await execute(
        resources, key, "UPDATE observations SET born_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    before = await ask(client, key, path)
    assert (CANARY in before.text) == (path in SERVES)
    assert (await terms(client, key, observations="30d")).status_code == 200
    after = await ask(client, key, path)
    assert after.status_code == before.status_code
    assert CANARY not in after.text


async def test_without_the_row_level_policy_it_would_be_served(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", remember: "Remember"
) -> None:
    await remember(key, f"likes {CANARY}")
    await execute(
        resources, key, "UPDATE observations SET born_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await terms(client, key, observations="30d")
    await resources.database.pool.execute("ALTER POLICY live ON observations USING (true)")
    try:
        assert CANARY in (await ask(client, key, "/v1/observations/read")).text
    finally:
        await resources.database.pool.execute("""
            ALTER POLICY live ON observations USING (
                born_at > (SELECT live_after('observations'))
                AND (NOT (SELECT goes_with_source()) OR EXISTS (SELECT FROM turns t WHERE t.id = ANY (evidence))))
        """)
    assert CANARY not in (await ask(client, key, "/v1/observations/read")).text


@pytest.mark.parametrize(("age", "served"), [("0 microseconds", 0), ("-1 microseconds", 1), ("1 microseconds", 0)])
async def test_at_the_instant_it_is_dead_and_a_microsecond_before_it_lives(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", age: str, served: int
) -> None:
    await say(client, key, "hello")
    await terms(client, key, turns="30d")
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)  # now() is one instant for the whole transaction
        await see_expired(connection)
        await connection.execute(
            f"UPDATE turns SET created_at = now() - interval '30 days' - interval '{age}' WHERE space_id = $1",  # noqa: S608 - of this test
            key.space,
        )
        await connection.execute("SELECT set_config('afterturn.expired', '', true)")
        assert await connection.fetchval("SELECT count(*) FROM turns WHERE space_id = $1", key.space) == served


async def test_a_longer_term_later_revives_nothing_swept_or_not(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", remember: "Remember"
) -> None:
    await remember(key, f"likes {CANARY}")
    await execute(
        resources, key, "UPDATE observations SET born_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await terms(client, key, observations="30d")
    for longer in ("60d", "forever"):
        await terms(client, key, observations=longer)
        assert CANARY not in (await ask(client, key, "/v1/observations/read")).text
    assert (await sweep(resources, key))["observations"] == 1


async def test_the_sweep_takes_what_is_dead_and_the_log_counts_on(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "one", "two", "three", "four", "five")
    await execute(
        resources,
        key,
        "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1 AND seq <= 3",
        key.space,
    )
    preview = await client.post("/v1/policies/retention/preview", json={"turns": "30d"}, headers=key.headers)
    assert preview.json()["rows"]["turns"] == 3
    await terms(client, key, turns="30d")
    preview = await client.post("/v1/policies/retention/preview", json={"turns": "30d"}, headers=key.headers)
    assert preview.json()["rows"]["turns"] == 0
    assert await sweep(resources, key) == {"turns": 3}
    assert await sweep(resources, key) == {}
    account = (await ask(client, key, "/v1/coverage/read")).json()
    assert (account["turns"]["pending"], account["turns"]["expired"]) == (2, 3)
    (log,) = await execute(resources, key, "SELECT * FROM logs WHERE space_id = $1", key.space)
    (waits,) = await execute(
        resources, key, "SELECT min(created_at) AS at, sum(tokens) AS tokens FROM turns WHERE space_id = $1", key.space
    )
    assert (log["pending_turns"], log["pending_tokens"], log["oldest_pending_at"]) == (2, waits["tokens"], waits["at"])


async def test_a_turn_that_expired_may_be_sent_again_and_is_a_turn(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    body = {"agent": "support", "conversation_id": "c1", "turns": [{"id": "m1", "role": "user", "content": "hello"}]}
    await client.post("/v1/turns", json=body, headers=key.headers)
    await execute(
        resources, key, "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await terms(client, key, turns="30d")
    unswept = (await client.post("/v1/turns", json=body, headers=key.headers)).json()
    await sweep(resources, key)
    swept = (await client.post("/v1/turns", json=body, headers=key.headers)).json()
    assert [(said["accepted"], said["duplicates"]) for said in (unswept, swept)] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(("loss", "served"), [("keep", True), ("with_source", False)])
async def test_a_line_outlives_its_evidence_or_goes_with_it(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", remember: "Remember", loss: str, *, served: bool
) -> None:
    await say(client, key, "hello")
    await remember(key, f"likes {CANARY}")
    await execute(
        resources,
        key,
        "UPDATE observations SET evidence = ARRAY(SELECT id FROM turns WHERE space_id = $1) WHERE space_id = $1",
        key.space,
    )
    await terms(client, key, turns="30d", on_source_loss=loss)
    assert CANARY in (await ask(client, key, "/v1/observations/read")).text
    await execute(
        resources, key, "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    assert (CANARY in (await ask(client, key, "/v1/observations/read")).text) == served
    swept = await sweep(resources, key)
    assert ("observations" in swept) == (not served)
    assert (CANARY in (await ask(client, key, "/v1/observations/read")).text) == served


async def test_the_job_leaves_a_receipt_of_what_it_took(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "one", "two")
    await execute(
        resources, key, "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await terms(client, key, turns="30d")
    assert await job.Sweeps(resources).due()
    async with resources.database.pool.acquire() as connection:
        row = await connection.fetchrow(
            "UPDATE work SET state = 'claimed', epoch = epoch + 1, owner = 'test', claimed_until = now() + interval '1 minute'"
            " WHERE kind = 'expire' AND space_id = $1 AND state = 'ready' RETURNING *",
            key.space,
        )
    letter = expire_letter(key.space)
    claim = work.Claim(
        row["id"], row["epoch"], letter.kind, letter.queue_class, key.space, letter.scope, 1, 0, 0, {}, {}
    )
    await job.expire(claim, resources)  # type: ignore[arg-type]  # it needs the stores alone
    listed = (await client.get("/v1/receipts", headers=key.headers)).json()["receipts"]
    assert [(one["action"], one["counts"]) for one in listed] == [
        ("retention.changed", {"turns": 30 * 86_400, "packages": 7 * 86_400, "job_records": 30 * 86_400}),
        ("retention.swept", {"turns": 2}),
    ]
    assert await sweep(resources, key) == {}


async def test_receipts_are_kept_a_year_and_go_by_whole_seals(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    short = await terms(client, key, receipts="364d")
    assert short.status_code == 422
    assert short.json()["errors"] == [{"path": "receipts", "why": "takes 365d or longer, or forever"}]
    assert (await terms(client, key, receipts="365d")).status_code == 200
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        before = await retention.horizon(connection, key.space, "receipts")
        assert before is not None
        assert await seal.expire(connection, key.space, before, 1_000, await signing.load(resources.keys)) == 0


@pytest.mark.parametrize(
    "body",
    [
        {"turns": "0s"},
        {"turns": "yesterday"},
        {"shoes": "30d"},
        {"turns": 30},
        {"turns": "-3d"},
        {"on_source_loss": "maybe"},
    ],
)
async def test_what_is_no_term_is_refused_and_changes_nothing(
    client: "httpx.AsyncClient", key: "Minted", body: dict[str, Any]
) -> None:
    answer = await client.put("/v1/policies/retention", json=body, headers=key.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert (await client.get("/v1/policies/retention", headers=key.headers)).json()["version"] == 0


async def test_another_spaces_terms_are_its_own(client: "httpx.AsyncClient", key: "Minted", mint: "Mint") -> None:
    other = await mint(scopes=("operator",))
    await terms(client, key, turns="30d")
    assert (await client.get("/v1/policies/retention", headers=other.headers)).json()["turns"] == "forever"
    assert (await client.get("/v1/policies/retention", headers=key.headers)).json()["turns"] == "30d"


Deletes = Callable[["Resources", "Minted"], Awaitable[Any]]


async def by_sweep(resources: "Resources", key: "Minted") -> None:
    assert await sweep(resources, key) == {}


async def by_hand(resources: "Resources", key: "Minted") -> None:
    for table in ("observations", "turns", "generations", "conversations", "logs", "handles", "subjects"):
        await execute(resources, key, f"DELETE FROM {table} WHERE space_id = $1", key.space)  # noqa: S608 - of this test


@pytest.mark.parametrize("deletes", [by_sweep, by_hand])
async def test_what_is_held_stays_whoever_deletes(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", remember: "Remember", deletes: Deletes
) -> None:
    await say(client, key, "one", "two")
    await remember(key, f"likes {CANARY}")
    profile = f"sub_{key.owner.hex}"
    for _ in range(2):
        assert (await client.put(f"/v1/holds/{profile}", headers=key.headers)).json() == {
            "profile_id": profile,
            "held": True,
        }
    await execute(
        resources, key, "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await execute(
        resources, key, "UPDATE observations SET born_at = now() - interval '40 days' WHERE space_id = $1", key.space
    )
    await terms(client, key, turns="30d", observations="30d")
    await deletes(resources, key)
    kept = await execute(
        resources,
        key,
        "SELECT (SELECT count(*) FROM turns WHERE space_id = $1) AS turns, (SELECT count(*) FROM observations WHERE space_id = $1) AS lines, (SELECT count(*) FROM subjects WHERE id = $2) AS people",
        key.space,
        key.owner,
    )
    assert tuple(kept[0]) == (2, 1, 1)
    assert CANARY not in (await ask(client, key, "/v1/observations/read")).text
    assert (await client.delete(f"/v1/holds/{profile}", headers=key.headers)).status_code == 200
    assert await sweep(resources, key) == {"turns": 2, "observations": 1}


async def test_nobody_is_erased_under_a_hold(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint(scopes=("turns:write", "operator"), admin=True, allow_impersonation=True)
    headers = key.headers | {"X-Canonical-User": "ana"}
    body = {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": "x"}]}
    await client.post("/v1/turns", json=body, headers=headers)
    named = {"handle_kind": "canonical_user", "handle": "ana"}
    asks = [{"subject": named}, {"conversation": {"subject": named, "conversation_id": "c1"}}]
    unknown = f"sub_{'0' * 32}"
    assert (await client.put(f"/v1/holds/{unknown}", headers=key.headers)).status_code == 404
    export = await client.post(
        "/v1/erasures",
        json={"subject": named, "reason_code": "other"},
        headers=(await mint(scopes=("operator",))).headers,
    )
    assert export.status_code == 404
    profile = await _profile(client, key)
    await client.put(f"/v1/holds/{profile}", headers=key.headers)
    for ask_of in asks:
        answer = await client.post("/v1/erasures", json=ask_of | {"reason_code": "other"}, headers=key.headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "legal_hold")
    await client.delete(f"/v1/holds/{profile}", headers=key.headers)
    done = await client.post("/v1/erasures", json=asks[0] | {"reason_code": "other"}, headers=key.headers)
    assert done.status_code == 202
    late = await client.put(f"/v1/holds/{profile}", headers=key.headers)
    assert (late.status_code, late.json()["code"]) == (409, "erasure_in_progress")


async def _profile(client: "httpx.AsyncClient", key: "Minted") -> str:
    transport: Any = client._transport  # the app in this process
    desk = transport.app.state.desk
    async with desk.resources.database.begin(key.space) as tx:
        subject = await (await driver(tx)).fetchval("SELECT subject_id FROM logs WHERE space_id = $1", key.space)
    return f"sub_{subject.hex}"
