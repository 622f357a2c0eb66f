import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlmodel import col, select, update

from gateways.key_store import KeyStore
from memory import tokens
from models import log as logs
from models.log import Log
from models.observation import Observation
from models.turn import StoredTurn
from models.work import Work
from recall.log import lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx
    from conftest import Mint, Minted, Remember, Serving

    from config.settings import Settings
    from jobs.resources import Resources

ASK = {"agent": "support"}
LINES = ("Ana moved to Porto.", "Ana prefers tea to coffee.", "安娜住在波尔图。", "Ana's flight is TP 941.")


async def post(client: "httpx.AsyncClient", key: "Minted", path: str, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/{path}", content=json.dumps(ASK | more).encode(), headers=key.headers)
    assert answer.is_success, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def say(client: "httpx.AsyncClient", key: "Minted", *contents: str, conversation: str = "c-1") -> dict[str, Any]:
    said = [{"role": "user", "content": content} for content in contents]
    return await post(client, key, "turns", conversation_id=conversation, turns=said)


async def the_log(resources: "Resources", key: "Minted") -> Log:
    async with resources.database.begin(key.space) as tx:
        log = await logs.find(tx, key.space, key.owner, "support", "corporate")
    assert log is not None
    return log


async def test_the_block_is_dated_ready_text_and_the_same_bytes_each_time(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint()
    await remember(key, *LINES)
    read = await post(client, key, "observations/read")
    assert (read["memory"], read["generation"]) == ("on", 1)
    assert [line for line in LINES if line in read["block"]] == list(LINES)
    assert read["block"].index("2026-03-02") < read["block"].index(LINES[0]) < read["block"].index("2026-03-03")
    assert read["tokens"] == tokens.count(read["block"])
    assert await post(client, key, "observations/read") == read
    await remember(key, "Something new.")
    assert "Something new." in (await post(client, key, "observations/read"))["block"]


@pytest.mark.parametrize("budget", [1, 20, 45, 60, 10_000])
@pytest.mark.parametrize("form", ["block", "json"])
async def test_a_budget_is_never_passed(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", budget: int, form: str
) -> None:
    key = await mint()
    await remember(key, *LINES)
    read = await post(client, key, "observations/read", token_budget=budget, format=form)
    assert read["tokens"] <= budget
    whole = await post(client, key, "observations/read", format=form)
    assert (read == whole) == (whole["tokens"] <= budget)


async def test_json_gives_each_line_with_its_ids(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint()
    first, *_ = await remember(key, LINES[0])
    await remember(key, "Ana moved to Braga.", supersedes=first)
    read = await post(client, key, "observations/read", format="json")
    moved, corrected = read["observations"]
    assert moved == {
        "id": first,
        "text": LINES[0],
        "kind": "event",
        "priority": "medium",
        "observed_at": "2026-03-02T10:15:00Z",
        "evidence": [{"turn_id": 1}],  # which is not there: whatever else was known of it went with it
        "tokens": tokens.count(LINES[0]),
    }
    assert corrected["supersedes"] == first


async def test_evidence_is_named_as_the_caller_named_it(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(admin=True, allow_impersonation=True)
    said = [{"id": "+351 912 345 678", "role": "user", "content": "Ana moved.", "at": "2026-03-02T10:15:00+01:00"}]
    ask = ASK | {"conversation_id": "line 7", "turns": [*said, {"role": "user", "content": "To Porto."}]}
    answer = await client.post("/v1/turns", json=ask, headers=key.headers | {"X-End-User": "somebody"})
    assert answer.json()["accepted"] == 2
    (line,) = await remember(key, LINES[0])
    async with resources.database.begin(key.space) as tx:
        turns = (await tx.execute(select(StoredTurn.id).order_by(col(StoredTurn.seq)))).scalars().all()
        await tx.execute(update(Observation).where(col(Observation.id) == line).values(evidence=[*turns, 2**60]))
    first, second, gone = (await post(client, key, "observations/read", format="json"))["observations"][0]["evidence"]
    assert first == {
        "turn_id": turns[0],
        "conversation_id": "line 7",
        "message_id": "+351 912 345 678",
        "at": "2026-03-02T10:15:00+01:00",
    }
    assert second["conversation_id"] == "line 7"
    assert "message_id" not in second
    assert gone == {"turn_id": 2**60}
    found = await post(client, key, "observations/search", query="porto")
    assert found["results"][0]["evidence"] == [first, second, gone]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("porto", [LINES[0]]),
        ("PORTO", [LINES[0]]),
        ("pórto", [LINES[0]]),
        ("波尔图", [LINES[2]]),
        ('"tea to coffee"', [LINES[1]]),
        ('"coffee to tea"', []),
        ("\x00 porto \ud800", [LINES[0]]),
        ("nothing of the kind", []),
    ],
)
async def test_search_finds_words_in_any_script(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", query: str, found: list[str]
) -> None:
    key = await mint()
    await remember(key, *LINES)
    answer = await post(client, key, "observations/search", query=query)
    assert [result["text"] for result in answer["results"]] == found
    assert all(result["score"] > 0 for result in answer["results"])


async def test_search_keeps_to_its_limit_best_first(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint()
    await remember(key, *(f"Ana said so {'twice, Ana did' if n == 3 else 'once'} ({n})." for n in range(12)))
    answer = await post(client, key, "observations/search", query="Ana", limit=5)
    scores = [result["score"] for result in answer["results"]]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert "twice" in answer["results"][0]["text"]


async def test_logs_of_agents_and_contexts_are_apart(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint(contexts=True)
    await remember(key, "At work.")
    await remember(key, "At home.", context="personal")
    await remember(key, "To sales.", agent="sales")
    assert "At work." in (await post(client, key, "observations/read"))["block"]
    assert "At work." not in (await post(client, key, "observations/read", context="personal"))["block"]
    assert "At home." in (await post(client, key, "observations/read", context="personal"))["block"]
    assert "To sales." in (await post(client, key, "observations/read", agent="sales"))["block"]


async def test_the_context_is_within_its_budget_and_leaves_memory_out_when_asked(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint()
    await remember(key, *LINES)
    ask = {"conversation_id": "c-9", "tags": ["x"], "object_types": [], "no_history": True}
    context = await post(client, key, "context", token_budget=1_000, **ask)
    assert [part["name"] for part in context["parts"]] == ["observations"]
    assert LINES[0] in context["parts"][0]["text"]
    assert context["tokens"] == context["parts"][0]["tokens"] == tokens.count(context["parts"][0]["text"])
    tight = await post(client, key, "context", token_budget=45, **ask)
    assert 0 < tight["tokens"] <= 45
    without = await post(client, key, "context", token_budget=1_000, no_memory=True, **ask)
    assert without["parts"] == []


async def test_the_context_of_another_agents_conversation_is_not_found(
    client: "httpx.AsyncClient", mint: "Mint"
) -> None:
    key = await mint()
    await say(client, key, "hello", conversation="half \ud800")
    ask = ASK | {"conversation_id": "half \ud800", "token_budget": 100}
    mine = await client.post("/v1/context", content=json.dumps(ask), headers=key.headers)
    other = await client.post("/v1/context", content=json.dumps(ask | {"agent": "sales"}), headers=key.headers)
    assert (mine.status_code, other.status_code) == (200, 404)


@pytest.mark.parametrize(
    ("path", "more", "wrong"),
    [
        ("observations/read", {"token_budget": 0}, "token_budget"),
        ("observations/read", {"token_budget": "9"}, "token_budget"),
        ("observations/read", {"format": "xml"}, "format"),
        ("observations/search", {}, "query"),
        ("observations/search", {"query": ""}, "query"),
        ("observations/search", {"query": "q" * 4_001}, "query"),
        ("observations/search", {"query": "q", "limit": 101}, "limit"),
        ("context", {"conversation_id": "c"}, "token_budget"),
        ("context", {"token_budget": 10}, "conversation_id"),
        ("coverage/read", {"agent": "two words"}, "agent"),
        ("observations/flush", {"contxet": "personal"}, "contxet"),
        ("context", {"conversation_id": "c", "token_budget": 9, "no_memroy": True}, "no_memroy"),
        (
            "turns",
            {"conversation_id": "c", "turns": [{"role": "user", "content": "x"}], "no_memroy": True},
            "no_memroy",
        ),
        ("turns", {"conversation_id": "c", "turns": [{"role": "user", "content": "x"}], "Ana Lima": 1}, "body"),
        ("turns", {"conversation_id": "c", "turns": [{"role": "user", "content": "x"}], "x" * 99: 1}, "body"),
    ],
)
async def test_a_wrong_member_is_named(
    client: "httpx.AsyncClient", mint: "Mint", path: str, more: dict[str, Any], wrong: str
) -> None:
    key = await mint()
    answer = await client.post(f"/v1/{path}", json=ASK | more, headers=key.headers)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [wrong]
    assert "Lima" not in answer.text
    covered = await post(client, key, "coverage/read")
    assert covered["turns"]["pending"] == 0


async def test_coverage_accounts_for_every_turn_and_says_why_not_yet(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    empty = await post(client, key, "coverage/read")
    assert empty["turns"] == dict.fromkeys(("pending", "observed", "skipped", "quarantined", "expired", "erased"), 0)
    assert empty["why_not_yet"] == "nothing is pending"
    await say(client, key, "I moved to Porto.")
    said = await post(client, key, "coverage/read")
    assert (said["turns"]["pending"], said["pending_tokens"], said["generation"]) == (1, 5, 1)
    assert said["why_not_yet"] == "5 of 8,000 tokens; flush by age in 30 min"
    log = await the_log(resources, key)
    when = datetime(2026, 3, 2, tzinfo=UTC)
    async with resources.database.begin(key.space) as tx:
        trouble = {"last_error": "rate_limit", "run_at": datetime.now(UTC) + timedelta(seconds=40)}
        await tx.execute(update(Work).where(col(Work.dedup) == f"log:{log.id}").values(**trouble))
        noted = {"last_error": "rate_limit", "last_error_at": when, "erased_turns": 2}
        await tx.execute(update(Log).where(col(Log.id) == log.id).values(**noted))
    troubled = await post(client, key, "coverage/read")
    assert troubled["last_error"] == {"code": "rate_limit", "at": "2026-03-02T00:00:00Z"}
    assert troubled["turns"]["erased"] == 2
    assert troubled["why_not_yet"].startswith("waiting: the model server answers rate_limit, next try in ")


async def test_coverage_knows_what_a_worker_is_doing(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    await say(client, key, "hello there")
    log = await the_log(resources, key)
    claimed = update(Work).where(col(Work.scope) == f"log:{log.id}").values(state="claimed", owner="w")
    async with resources.database.begin(key.space) as tx:
        await tx.execute(claimed)
    assert (await post(client, key, "coverage/read"))["why_not_yet"] == "observing now"
    async with resources.database.begin(key.space) as tx:
        await tx.execute(update(Work).where(col(Work.scope) == f"log:{log.id}").values(kind="reflect"))
    assert (await post(client, key, "coverage/read"))["why_not_yet"] == "waiting: the log is being rewritten"


async def test_a_flush_makes_what_is_pending_due_now(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    nothing = await post(client, key, "observations/flush")
    assert (nothing["due"], nothing["pending_turns"]) == (False, 0)
    await say(client, key, "one", "two")
    flushed = await post(client, key, "observations/flush")
    assert (flushed["due"], flushed["pending_turns"], flushed["pending_tokens"]) == (True, 2, 2)
    log = await the_log(resources, key)
    assert log.flush_through == log.last_seq == 2
    async with resources.database.begin(key.space) as tx:
        waiting = (await tx.execute(select(Work).where(col(Work.dedup) == f"log:{log.id}"))).scalars().all()
    assert [(work.state, work.run_at <= datetime.now(UTC)) for work in waiting] == [("ready", True)]
    assert (await post(client, key, "coverage/read"))["why_not_yet"] == "due (asked for), waiting for a worker"


@pytest.fixture(scope="module")
async def off(settings: "Settings", serving: "Serving") -> "AsyncIterator[httpx.AsyncClient]":
    """An API without observational memory, over the same stores."""
    from api.app import create_app

    memory = settings.memory.model_copy(update={"observational_memory": False})
    async with serving(create_app(settings.model_copy(update={"memory": memory}))) as served:
        yield served


async def test_switched_off_every_read_is_empty_and_says_so_and_nothing_is_lost(
    client: "httpx.AsyncClient", off: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint()
    await remember(key, *LINES)
    await say(client, key, "pending since before")
    before = await post(client, key, "observations/read", format="json")
    read = await post(off, key, "observations/read")
    assert (read["memory"], read["block"], read["tokens"]) == ("off", "", 0)
    assert (await post(off, key, "observations/read", format="json"))["observations"] == []
    assert (await post(off, key, "observations/search", query="porto"))["results"] == []
    assert (await post(off, key, "context", conversation_id="c", token_budget=99))["parts"] == []
    covered = await post(off, key, "coverage/read")
    assert (covered["memory"], covered["why_not_yet"]) == ("off", "memory is off")
    assert covered["turns"]["pending"] == 1
    assert (await post(off, key, "observations/flush"))["due"] is False
    said = await say(off, key, "meanwhile")
    assert (said["memory"], said["accepted"], said["observer"]["due"]) == ("off", 1, False)
    assert await post(client, key, "observations/read", format="json") == before
    back = await post(client, key, "coverage/read")
    assert back["turns"]["pending"] == 1
    assert back["skipped_by_reason"] == {"memory_off": 1}


async def test_an_erased_persons_log_reads_as_empty(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint()
    await remember(key, *LINES)
    await resources.keys.pool.execute("DELETE FROM wrapped_keys WHERE id = $1", key.owner)
    fresh = KeyStore(resources.keys.pool, resources.keys.masters)
    opened = await lines(replace(resources, keys=fresh), key.space, key.owner, "support", "corporate")
    assert (opened.lines, opened.log) == ((), None)
