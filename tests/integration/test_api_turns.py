import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func
from sqlmodel import col, select

from api.turns import TurnsTaken
from models.content import open_turn
from models.conversation import SEALED_ID, Conversation
from models.turn import StoredTurn

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Serving

    from config.settings import Settings
    from jobs.resources import Resources


def turns(*contents: Any, ids: bool = True, conversation: str = "c-1", **more: Any) -> dict[str, Any]:
    said = [
        {"role": "user", "content": content} | ({"id": f"m-{index}"} if ids else {})
        for index, content in enumerate(contents)
    ]
    return {"agent": "support", "conversation_id": conversation, "turns": said, **more}


async def stored(resources: "Resources", key: "Minted") -> int:
    async with resources.database.begin(key.space) as tx:
        return int((await tx.execute(select(func.count()).select_from(StoredTurn))).scalar_one())


async def texts(resources: "Resources", key: "Minted") -> list[str]:
    async with resources.database.begin(key.space) as tx:
        rows = (await tx.execute(select(StoredTurn).order_by(col(StoredTurn.seq)))).scalars().all()
    return [open_turn(row, await resources.keys.key(row.subject_id)).text for row in rows]


async def test_turns_are_committed_and_the_answer_says_where_the_log_stands(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint(owner="ana")
    answer = await client.post("/v1/turns", json=turns("I moved to Porto.", "And I like tea."), headers=key.headers)
    said = answer.json()
    assert answer.status_code == 202
    assert TurnsTaken.model_validate_json(answer.content, strict=True).model_dump(mode="json") == said
    assert (said["accepted"], said["duplicates"], said["memory"]) == (2, 0, "on")
    assert said["memory_identity"] == {"kind": "owner", "id": f"sub_{key.owner.hex}", "ignored": []}
    assert said["pending_tokens"] == 5 + 5
    assert said["observer"]["due"] is False
    assert said["observer"]["threshold"] == 8_000
    assert said["observer"]["flush_at"].endswith("Z")
    assert await texts(resources, key) == ["I moved to Porto.", "And I like tea."]


async def test_past_the_threshold_the_log_is_due_now(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint()
    said = (await client.post("/v1/turns", json=turns("word " * 8_001), headers=key.headers)).json()
    assert said["pending_tokens"] > 8_000
    assert said["observer"]["due"] is True


async def test_the_same_message_id_again_is_a_duplicate_in_its_conversation_only(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    await client.post("/v1/turns", json=turns("one", "two"), headers=key.headers)
    again = (await client.post("/v1/turns", json=turns("one", "two", "three"), headers=key.headers)).json()
    other = (await client.post("/v1/turns", json=turns("one", conversation="c-2"), headers=key.headers)).json()
    assert (again["accepted"], again["duplicates"]) == (1, 2)
    assert (other["accepted"], other["duplicates"]) == (1, 0)
    assert await stored(resources, key) == 4


async def test_a_hundred_equal_calls_at_once_store_one(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    calls = (client.post("/v1/turns", json=turns("only once"), headers=key.headers) for _ in range(100))
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {202}
    assert sum(answer.json()["accepted"] for answer in answers) == 1
    assert sum(answer.json()["duplicates"] for answer in answers) == 99
    assert await stored(resources, key) == 1


async def test_an_idempotency_key_does_for_the_call_what_ids_do_for_turns(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    headers = key.headers | {"Idempotency-Key": "call-1"}
    calls = (client.post("/v1/turns", json=turns("same", "same", ids=False), headers=headers) for _ in range(10))
    answers = [answer.json() for answer in await asyncio.gather(*calls)]
    assert sum(answer["accepted"] for answer in answers) == 2
    assert await stored(resources, key) == 2
    without = await client.post("/v1/turns", json=turns("same", "same", ids=False), headers=key.headers)
    assert without.json()["accepted"] == 2


@pytest.mark.parametrize("idempotency_key", ["", "k" * 256])
async def test_an_idempotency_key_has_a_length(client: "httpx.AsyncClient", mint: "Mint", idempotency_key: str) -> None:
    key = await mint()
    headers = key.headers | {"Idempotency-Key": idempotency_key}
    answer = await client.post("/v1/turns", json=turns("hello", ids=False), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "header.Idempotency-Key"


async def test_a_conversation_stays_with_its_agent_and_another_hears_what_a_stranger_hears(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    await client.post("/v1/turns", json=turns("hello"), headers=key.headers)
    taken = await client.post("/v1/turns", json=turns("hello") | {"agent": "sales"}, headers=key.headers)
    pinned = await mint(agent="support")
    foreign = await client.post("/v1/turns", json=turns("hello") | {"agent": "sales"}, headers=pinned.headers)
    unknown = await client.get("/v1/no-such-thing", headers=key.headers)
    assert taken.status_code == foreign.status_code == unknown.status_code == 404
    bodies = [answer.json() | {"instance": ""} for answer in (taken, foreign, unknown)]
    assert bodies[0] == bodies[1] == bodies[2]
    assert await stored(resources, key) == 1


async def test_another_owners_equal_conversation_id_is_another_conversation(
    client: "httpx.AsyncClient", mint: "Mint"
) -> None:
    space = "two-owners"
    first, second = await mint(space, owner="ana"), await mint(space, owner="bela")
    await client.post("/v1/turns", json=turns("hello"), headers=first.headers)
    answer = await client.post("/v1/turns", json=turns("hello") | {"agent": "sales"}, headers=second.headers)
    assert (answer.status_code, answer.json()["accepted"]) == (202, 1)


async def test_the_conversation_id_may_stand_in_the_metadata(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    body = turns("hello", metadata={"conversation_id": "from-metadata", "else": 1})
    del body["conversation_id"]
    assert (await client.post("/v1/turns", json=body, headers=key.headers)).status_code == 202
    again = await client.post("/v1/turns", json=turns("hello", conversation="from-metadata"), headers=key.headers)
    assert again.json()["duplicates"] == 1


async def test_what_a_message_carries_besides_is_left_out_and_parts_leave_markers(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = {"role": "user", "content": [{"type": "text", "text": "Look:"}, image], "logprobs": [1], "x": {"y": None}}
    body = turns() | {"turns": [said], "metadata": {"model": "some", "stream": True}}
    assert (await client.post("/v1/turns", json=body, headers=key.headers)).status_code == 202
    assert await texts(resources, key) == ["Look:\n[image]"]


async def test_skipped_turns_say_why(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint()
    body = turns("hello", "", no_memory=False)
    body["turns"].append({"role": "system", "content": "Be brief."})
    await client.post("/v1/turns", json=body, headers=key.headers)
    await client.post(
        "/v1/turns", json=turns("off the record", no_memory=True, conversation="c-2"), headers=key.headers
    )
    covered = (await client.post("/v1/coverage/read", json={"agent": "support"}, headers=key.headers)).json()
    assert covered["turns"]["pending"] == 1
    assert covered["turns"]["skipped"] == 3
    assert covered["skipped_by_reason"] == {"empty": 1, "role": 1, "no_memory": 1}


ODD = [
    ("a\x00b", "a\ufffdb"),
    ("\ud800 half", "\ufffd half"),
    ("half \udfff", "half \ufffd"),
    ("\u202eright to left\u202c", "\u202eright to left\u202c"),
    ("bell \x07 and escape \x1b[31m", "bell \x07 and escape \x1b[31m"),
    ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    ("<|endoftext|>", "<|endoftext|>"),
]


@pytest.mark.parametrize(("sent", "kept"), ODD)
async def test_odd_characters_break_nothing(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources", sent: str, kept: str
) -> None:
    key = await mint()
    body = turns(sent, conversation=f"c-{sent}", task_id=sent)
    body["turns"][0] |= {"id": sent, "name": sent}
    raw = json.dumps(body).encode()
    headers = key.headers | {"Content-Type": "application/json"}
    answer = await client.post("/v1/turns", content=raw, headers=headers)
    assert answer.status_code == 202, answer.text
    assert await texts(resources, key) == [kept]
    sealing = await resources.keys.key(key.owner)
    async with resources.database.begin(key.space) as tx:
        conversation = (await tx.execute(select(Conversation))).scalar_one()
    conversation_id = sealing.open(conversation.sealed_id, SEALED_ID)
    assert conversation.digest == sealing.digest(conversation_id, SEALED_ID)
    assert conversation_id.startswith(f"c-{kept}")
    assert (conversation_id == f"c-{kept}") == (sent == kept)  # what had to be replaced is marked
    again = await client.post("/v1/turns", content=raw, headers=headers)
    assert again.json()["duplicates"] == 1


@pytest.mark.parametrize(
    "raw",
    [
        b'{"agent":"support","conversation_id":"c","turns":[{"role":"user","content":"a\x00b\nc"}]}',
        b'{"agent":"support","conversation_id":"c","turns":[{"role":"user","content":"\xed\xa0\x80"}]}',
    ],
)
async def test_raw_control_characters_and_encoded_surrogates_are_taken(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources", raw: bytes
) -> None:
    key = await mint()
    answer = await client.post("/v1/turns", content=raw, headers=key.headers)
    assert answer.status_code == 202, answer.text
    assert "\ufffd" in (await texts(resources, key))[0]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"turns": []}, "turns"),
        ({"turns": None}, "turns"),
        ({"turns": "hello"}, "turns"),
        ({"turns": [{"role": "narrator", "content": "x"}]}, "turns[0].role"),
        ({"turns": [{"role": "user", "content": "x"}, {"role": "user", "content": 7}]}, "turns[1].content"),
        ({"turns": ["hello"]}, "turns[0]"),
        ({"turns": [{"role": "user", "content": "x", "at": "2026-03-02T10:15:00"}]}, "turns[0].at"),
        ({"turns": [{"role": "user", "content": "x", "at": 1772446500}]}, "turns[0].at"),
        ({"turns": [{"role": "user", "content": "x", "id": "i" * 513}]}, "turns[0].id"),
        ({"agent": None}, "agent"),
        ({"agent": ""}, "agent"),
        ({"agent": "a" * 129}, "agent"),
        ({"agent": "ana@example.com"}, "agent"),
        ({"agent": "two\nlines"}, "agent"),
        ({"agent": "support\n"}, "agent"),
        ({"conversation_id": ""}, "conversation_id"),
        ({"conversation_id": "c" * 513}, "conversation_id"),
        ({"conversation_id": 7}, "conversation_id"),
        ({"conversation_id": None}, "conversation_id"),
        ({"task_id": "t" * 513}, "task_id"),
        ({"context": "private"}, "context"),
        ({"context": "personal"}, "context"),
        ({"no_memory": "yes"}, "no_memory"),
        ({"metadata": []}, "metadata"),
    ],
)
async def test_a_wrong_member_is_named_by_its_path_and_nothing_is_stored(
    client: "httpx.AsyncClient", mint: "Mint", resources: "Resources", change: dict[str, Any], path: str
) -> None:
    key = await mint()
    answer = await client.post("/v1/turns", json=turns("hello") | change, headers=key.headers)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert [error["path"] for error in answer.json()["errors"]] == [path]
    assert await stored(resources, key) == 0


async def test_contexts_are_kept_apart_where_the_space_says_so(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint(contexts=True)
    await client.post("/v1/turns", json=turns("at work"), headers=key.headers)
    personal = turns("at home", conversation="c-2", context="personal")
    assert (await client.post("/v1/turns", json=personal, headers=key.headers)).status_code == 202
    for context in ("corporate", "personal"):
        ask = {"agent": "support", "context": context}
        covered = await client.post("/v1/coverage/read", json=ask, headers=key.headers)
        assert covered.json()["turns"]["pending"] == 1


async def test_the_edges_of_the_lengths_are_taken(client: "httpx.AsyncClient", mint: "Mint") -> None:
    key = await mint()
    body = turns("hello", conversation="c" * 512, task_id="t" * 512) | {"agent": "a" * 128}
    body["turns"][0]["id"] = "i" * 512
    headers = key.headers | {"Idempotency-Key": "k" * 255}
    assert (await client.post("/v1/turns", json=body, headers=headers)).status_code == 202


@pytest.fixture(scope="module")
async def tight(settings: "Settings", serving: "Serving") -> Any:
    """An API with small limits."""
    from api.app import create_app

    small = settings.http.model_copy(update={"max_body": 8_000, "max_turns": 3, "max_turn": 1_500})
    async with serving(create_app(settings.model_copy(update={"http": small}))) as served:
        yield served


async def refused(answer: "httpx.Response", limit: str, maximum: int) -> None:
    assert answer.status_code == 413, answer.text
    said = answer.json()
    assert (said["code"], said["limit"], said["maximum"]) == ("too_large", limit, maximum)


async def test_the_number_of_turns_has_a_limit(
    tight: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    await refused(await tight.post("/v1/turns", json=turns(*"abcd"), headers=key.headers), "turns", 3)
    assert await stored(resources, key) == 0
    assert (await tight.post("/v1/turns", json=turns(*"abc"), headers=key.headers)).status_code == 202


async def test_a_turns_text_has_a_limit_in_bytes(
    tight: "httpx.AsyncClient", mint: "Mint", resources: "Resources"
) -> None:
    key = await mint()
    fits, one_more = "é" * 750, "é" * 750 + "e"
    await refused(await tight.post("/v1/turns", json=turns("a", one_more), headers=key.headers), "turn_bytes", 1_500)
    assert await stored(resources, key) == 0
    assert (await tight.post("/v1/turns", json=turns("a", fits), headers=key.headers)).status_code == 202


@pytest.mark.parametrize("announced", [True, False])
async def test_the_body_has_a_limit_whether_it_is_announced_or_streamed(
    tight: "httpx.AsyncClient", mint: "Mint", resources: "Resources", *, announced: bool
) -> None:
    key = await mint()
    body = json.dumps(turns("a", "b", "c")).encode()
    fits = body + b" " * (8_000 - len(body))

    async def streamed(whole: bytes) -> Any:
        for start in range(0, len(whole), 1_000):
            yield whole[start : start + 1_000]

    async def send(whole: bytes) -> "httpx.Response":
        content = whole if announced else streamed(whole)
        headers = key.headers | {"Content-Type": "application/json"}
        return await tight.post("/v1/turns", content=content, headers=headers)

    await refused(await send(fits + b" "), "body_bytes", 8_000)
    assert await stored(resources, key) == 0
    assert (await send(fits)).json()["accepted"] == 3


@pytest.mark.parametrize("announced", ["100000000", "9" * 5_000], ids=["long", "endless"])
async def test_an_oversized_body_is_refused_before_it_is_read(
    tight: "httpx.AsyncClient", mint: "Mint", announced: str
) -> None:
    key = await mint()
    read = 0

    async def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield b" " * 1_000

    headers = key.headers | {"Content-Length": announced, "Content-Type": "application/json"}
    await refused(await tight.post("/v1/turns", content=endless(), headers=headers), "body_bytes", 8_000)
    assert read <= 1
