"""What was said, and who said it, is at rest only in sealed columns, and in no log line, metric or answer to others."""

import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import structlog
from sqlalchemy import text

from models.turn import SEALED_TURN

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Servers

    from jobs.resources import Resources


def canary() -> str:
    # A word that no mask takes for personal data: what is at rest must be sealed, masked or not.
    return f"canary{''.join(character for character in uuid4().hex if character.isalpha())}quux"


async def tables(connection: Any) -> list[tuple[str, str]]:
    rows = await connection.fetch(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
    )
    return [tuple(row) for row in rows]


async def found_in(pool: Any, words: list[str]) -> list[tuple[str, str, str]]:
    """Every column of every table, every row, as text and as bytes."""
    hits = []
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        for table, column in await tables(connection):
            for word in words:
                needles = [f"%{word}%", f"%{word.encode().hex()}%"]
                query = f'SELECT count(*) FROM "{table}" WHERE "{column}"::text ILIKE ANY($1)'  # noqa: S608 - catalogue names
                if await connection.fetchval(query, needles):
                    hits.append((table, column, word))
    return hits


class Speech:
    """Everything that one person's chat says, each piece a canary of its own."""

    def __init__(self) -> None:
        names = ("content", "part", "tool", "name", "message", "conversation", "task", "user", "end", "key", "extra")
        self.words = {name: canary() for name in names}

    def body(self) -> dict[str, Any]:
        word = self.words
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": f'{{"a": "{word["tool"]}"}}'}}
        return {
            "agent": "support",
            "conversation_id": word["conversation"],
            "task_id": word["task"],
            "metadata": {"x": word["extra"]},
            "turns": [
                {"id": word["message"], "role": "user", "name": word["name"], "content": f"I say {word['content']}."},
                {"role": "user", "content": [{"type": "text", "text": word["part"]}], "x": word["extra"]},
                {"role": "assistant", "content": None, "tool_calls": [call]},
            ],
        }

    def headers(self, key: "Minted") -> dict[str, str]:
        identity = {"X-Canonical-User": self.words["user"], "X-End-User": self.words["end"]}
        return key.headers | identity | {"Idempotency-Key": self.words["key"]}


@pytest.fixture
async def said(client: "httpx.AsyncClient", mint: "Mint") -> tuple[Speech, "Minted"]:
    speech, key = Speech(), await mint(owner=canary(), admin=True, allow_impersonation=True)
    answer = await client.post("/v1/turns", json=speech.body(), headers=speech.headers(key))
    assert answer.status_code == 202, answer.text
    return speech, key


async def test_no_column_of_any_table_holds_a_word_or_a_handle(
    said: tuple[Speech, "Minted"], resources: "Resources"
) -> None:
    speech, _ = said
    words = list(speech.words.values())
    assert await found_in(resources.database.pool, words) == []
    assert await found_in(resources.keys.pool, words) == []


async def test_the_scan_would_find_what_is_not_sealed(resources: "Resources", mint: "Mint") -> None:
    word = canary()
    key = await mint()
    await resources.database.pool.execute("UPDATE api_keys SET name = $2 WHERE id = $1", key.id, word)
    assert await found_in(resources.database.pool, [word]) == [("api_keys", "name", word)]


async def test_the_words_are_there_for_whoever_holds_the_persons_key(
    said: tuple[Speech, "Minted"], resources: "Resources"
) -> None:
    speech, key = said
    async with resources.database.begin(key.space) as tx:
        rows = (await tx.execute(text("SELECT subject_id, sealed FROM turns ORDER BY seq"))).all()
    opened = [(await resources.keys.key(subject)).open(bytes(sealed), SEALED_TURN) for subject, sealed in rows]
    for name in ("content", "part", "tool", "name", "message"):
        assert any(speech.words[name] in one for one in opened)
    assert not any(speech.words["extra"] in one for one in opened)


async def test_no_log_line_and_no_metric_holds_a_word_or_a_handle(
    client: "httpx.AsyncClient",
    mint: "Mint",
    servers: "Servers",
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    speech, key = Speech(), await mint(owner="backend", admin=True, allow_impersonation=True)
    stranger = await mint(scopes=("operator",))
    headers = speech.headers(key)
    with caplog.at_level(logging.DEBUG), structlog.testing.capture_logs() as events:
        await client.post("/v1/turns", json=speech.body(), headers=headers)
        await client.post("/v1/turns", json=speech.body() | {"agent": "sales"}, headers=headers)
        await client.post("/v1/turns", json=speech.body() | {"turns": [speech.words["content"]]}, headers=headers)
        await client.post("/v1/turns", json=speech.body(), headers=stranger.headers)
        await client.post(f"/v1/{speech.words['content']}", headers=headers)
        ask = {"agent": "support", "query": speech.words["content"]}
        await client.post("/v1/observations/search", json=ask, headers=headers)
        metrics = (await client.get("/metrics")).text
    written = capfd.readouterr()
    logs = "".join((folder / "log").read_text(errors="replace") for folder in _folders(servers))
    # asyncpg and httpx write at DEBUG what no process of ours lets through
    ours = "".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    for word in speech.words.values():
        assert word not in f"{events}{ours}{metrics}{written.out}{written.err}{logs}"


def _folders(servers: "Servers") -> list[Any]:
    return [servers.data._folder, servers.keys._folder, servers.valkey._folder]


async def test_a_query_without_its_predicate_sees_the_bound_space_only(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    here, there = await mint(), await mint()
    body = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "hello"}]}
    for key in (here, there):
        await client.post("/v1/turns", json=body, headers=key.headers)
    guarded = ("subjects", "handles", "logs", "generations", "conversations", "turns")
    for table in guarded:
        async with resources.database.begin(here.space) as tx:
            spaces = (await tx.execute(text(f"SELECT DISTINCT space_id FROM {table}"))).scalars().all()  # noqa: S608 - names above
        assert list(spaces) == [here.space], table
        # Without a binding nothing is seen at all, and nothing can be written for another space.
        assert await resources.database.pool.fetchval(f"SELECT count(*) FROM {table}") == 0  # noqa: S608 - names above
    async with resources.database.begin(here.space) as tx:
        changed = await tx.execute(
            text("UPDATE turns SET state = 'expired', reason = 'x' WHERE space_id = :there"), {"there": there.space}
        )
        assert changed.rowcount == 0  # type: ignore[attr-defined]  # an UPDATE's result has one


async def test_queue_payloads_hold_ids_only(client: "httpx.AsyncClient", mint: "Mint", resources: "Resources") -> None:
    key = await mint()
    body = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "hello"}]}
    await client.post("/v1/turns", json=body, headers=key.headers)
    row = await resources.database.pool.fetchrow("SELECT * FROM work WHERE space_id = $1", key.space)
    assert row["payload"].keys() == {"log_id"}
    assert row["scope"] == row["dedup"] == f"log:{row['payload']['log_id']}"
