from typing import TYPE_CHECKING, Any

import pytest
from sqlmodel import col, select, update

from models import log as logs
from models import quarantine
from models.quarantine import Quarantined
from models.turn import StoredTurn
from models.work import Work

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

SCOPES = ("turns:write", "memory:read", "operator")
ATTEMPT = {"outcome": "degenerate", "at": "2026-03-02T10:15:00+00:00"}


async def set_aside(client: "httpx.AsyncClient", resources: "Resources", key: "Minted", agent: str = "support") -> int:
    """One turn that went through all its attempts; answers the record's id."""
    said = {"agent": agent, "conversation_id": agent, "turns": [{"role": "user", "content": "hello"}]}
    assert (await client.post("/v1/turns", json=said, headers=key.headers)).status_code == 202
    async with resources.database.begin(key.space) as tx:
        found = await logs.find(tx, key.space, key.owner, agent, "corporate")
        assert found is not None
        log = await logs.lock(tx, key.space, found.id)
        assert log is not None
        turn = (await tx.execute(select(StoredTurn).where(col(StoredTurn.log_id) == log.id))).scalars().all()[-1]
        record = Quarantined(
            space_id=key.space, log_id=log.id, turn_id=turn.id, reason="degenerate", attempts=[ATTEMPT] * 3
        )
        await quarantine.put(tx, record)
        log.observed_through, log.pending_turns, log.pending_tokens = log.last_seq, 0, 0
        log.oldest_pending_at = None
        await tx.flush()
        await tx.execute(update(Work).where(col(Work.scope) == f"log:{log.id}").values(state="done"))
        return record.id


async def listed(client: "httpx.AsyncClient", key: "Minted", **query: Any) -> dict[str, Any]:
    answer = await client.get("/v1/quarantine", params=query, headers=key.headers)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_what_is_set_aside_is_listed_with_its_attempts(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    record = await set_aside(client, resources, key)
    (held,) = (await listed(client, key))["quarantine"]
    assert (held["id"], held["reason"]) == (record, "degenerate")
    assert held["attempts"] == [{"outcome": "degenerate", "at": "2026-03-02T10:15:00Z"}] * 3
    covered = await client.post("/v1/coverage/read", json={"agent": "support"}, headers=key.headers)
    assert covered.json()["turns"]["quarantined"] == 1


async def test_the_list_comes_in_pages(client: "httpx.AsyncClient", mint: "Mint", resources: "Resources") -> None:
    key = await mint(scopes=SCOPES)
    records = [await set_aside(client, resources, key, agent=f"agent-{number}") for number in range(5)]
    seen, page = [], await listed(client, key, limit=2)
    while True:
        seen += [held["id"] for held in page["quarantine"]]
        if "next" not in page:
            break
        page = await listed(client, key, limit=2, after=page["next"])
    assert seen == records


async def test_a_retried_turn_is_pending_and_due_once(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    record = await set_aside(client, resources, key)
    answer = await client.post(f"/v1/quarantine/{record}/retry", headers=key.headers)
    assert (answer.status_code, answer.json()) == (202, {"id": record, "state": "pending"})
    covered = (await client.post("/v1/coverage/read", json={"agent": "support"}, headers=key.headers)).json()
    assert (covered["turns"]["pending"], covered["turns"]["quarantined"]) == (1, 0)
    assert covered["why_not_yet"] == "due (asked for), waiting for a worker"
    async with resources.database.begin(key.space) as tx:
        turn = (await tx.execute(select(StoredTurn))).scalar_one()
        log = await logs.by_id(tx, key.space, turn.log_id)
    assert log is not None
    assert turn.seq == log.last_seq > log.observed_through
    again = await client.post(f"/v1/quarantine/{record}/retry", headers=key.headers)
    assert (again.status_code, again.json()["code"]) == (409, "already_released")
    assert (await listed(client, key))["quarantine"] == []


async def test_another_spaces_or_agents_record_is_not_found(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint("quarantines", SCOPES)
    record = await set_aside(client, resources, key)
    foreign, pinned = await mint(scopes=SCOPES), await mint("quarantines", SCOPES, agent="sales")
    for stranger in (foreign, pinned):
        assert (await listed(client, stranger))["quarantine"] == []
        answer = await client.post(f"/v1/quarantine/{record}/retry", headers=stranger.headers)
        assert answer.status_code == 404
    assert len((await listed(client, key))["quarantine"]) == 1


@pytest.mark.parametrize("number", ["0", "-1", "x", str(2**63), "1.5", "%00"])
async def test_a_number_that_is_none_is_refused_without_repeating_it(
    client: "httpx.AsyncClient", mint: "Mint", number: str
) -> None:
    key = await mint(scopes=SCOPES)
    answer = await client.post(f"/v1/quarantine/{number}/retry", headers=key.headers)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == ["path.record_id"]


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 501}, {"after": -1}, {"after": "x"}])
async def test_a_wrong_page_is_refused(client: "httpx.AsyncClient", mint: "Mint", query: dict[str, Any]) -> None:
    key = await mint(scopes=SCOPES)
    answer = await client.get("/v1/quarantine", params=query, headers=key.headers)
    assert [error["path"] for error in answer.json()["errors"]] == [f"query.{next(iter(query))}"]
