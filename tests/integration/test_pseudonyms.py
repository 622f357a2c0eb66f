"""Pseudonyms: one placeholder for one value of one person's, request after request, however many come at once."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from api import auth
from api.app import create_app
from models.content import open_turn
from models.database import driver
from models.turn import StoredTurn

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Serving

    from config.settings import Settings
    from jobs.resources import Resources

RULES = {"operators": {"EMAIL_ADDRESS": "pseudonym", "PERSON": "pseudonym"}}


@pytest.fixture
async def key(mint: "Mint", client: "httpx.AsyncClient", monkeypatch: pytest.MonkeyPatch) -> "Minted":
    """Of a space that gives pseudonyms."""
    for span in ("_ASKED_AFTER", "_TRUSTED"):
        monkeypatch.setattr(auth, span, -1.0)
    scopes = ("turns:write", "security", "operator", "profiles:write", "profiles:read")
    key = await mint(scopes=scopes, admin=True, allow_impersonation=True)
    answer = await client.put("/v1/policies/masking", json=RULES, headers=key.headers)
    assert answer.json()["operators"] == RULES["operators"]
    return key


async def say(client: "httpx.AsyncClient", key: "Minted", who: str, text: str) -> None:
    turn = {"role": "user", "content": text}
    body = {"agent": "support", "conversation_id": f"c-{who}", "turns": [turn]}
    answer = await client.post("/v1/turns", json=body, headers=key.headers | {"X-Canonical-User": who})
    assert answer.status_code == 202, answer.text


async def stored(resources: "Resources", key: "Minted") -> list[str]:
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch(
            "SELECT t.* FROM turns t JOIN subjects s ON s.id = t.subject_id WHERE t.space_id = $1 ORDER BY t.id",
            key.space,
        )
    turns = [StoredTurn(**dict(row)) for row in rows]
    return [open_turn(turn, await resources.keys.key(turn.subject_id)).text for turn in turns]


@pytest.fixture
async def elsewhere(settings: "Settings", serving: "Serving") -> AsyncIterator["httpx.AsyncClient"]:
    """Another process."""
    async with serving(create_app(settings)) as client:
        yield client


async def test_a_value_has_one_placeholder_in_all_that_a_person_says(
    client: "httpx.AsyncClient", elsewhere: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    named = {"handles": [{"handle_kind": "canonical_user", "handle": "cust-1"}], "names": ["Mia Okonkwo"]}
    await client.put("/v1/subjects", json=named, headers=key.headers)
    await say(client, key, "cust-1", "okonkwo or a@example.org, b@example.org")
    await say(elsewhere, key, "cust-1", "c@example.org, B@Example.org, OKONKWO")
    await say(client, key, "cust-2", "b@example.org")
    await say(client, key, "cust-1", "a@example.org and c@example.org")
    assert await stored(resources, key) == [
        "<PERSON_1> or <EMAIL_ADDRESS_1>, <EMAIL_ADDRESS_2>",
        "<EMAIL_ADDRESS_3>, <EMAIL_ADDRESS_2>, <PERSON_1>",
        "<EMAIL_ADDRESS_1>",
        "<EMAIL_ADDRESS_1> and <EMAIL_ADDRESS_3>",
    ]


async def test_of_many_at_once_no_two_values_share_a_placeholder_and_no_value_has_two(
    client: "httpx.AsyncClient", elsewhere: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    numbers = [at % 8 for at in range(24)]
    calls = [
        say((client, elsewhere)[at % 2], key, "cust-1", f"number {'abcdefgh'[n]}: u{n}@example.org")
        for at, n in enumerate(numbers)
    ]
    await asyncio.gather(*calls)
    said = Counter(await stored(resources, key))
    assert set(said.values()) == {3}
    placeholders = [re.findall("<.*>", text)[0] for text in said]
    assert sorted(placeholders) == [f"<EMAIL_ADDRESS_{n}>" for n in range(1, 9)]


async def test_what_is_kept_for_it_shows_no_value_and_goes_with_the_person(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "cust-1", "zoe@example.org")
    wanted = {"handle_kind": "canonical_user", "handle": "cust-1"}
    profile = (await client.post("/v1/profiles/lookup", json=wanted, headers=key.headers)).json()["profile_id"]
    counts = (await client.get(f"/v1/profiles/{profile}", headers=key.headers)).json()["counts"]
    assert counts["pseudonyms"] == 1
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch("SELECT * FROM pseudonyms WHERE space_id = $1", key.space)
    assert len(rows) == 1
    assert "EMAIL" not in repr(rows)
    wish = {"subject": wanted, "reason_code": "subject_request"}
    erasure = (await client.post("/v1/erasures", json=wish, headers=key.headers)).json()["id"]
    done = (await client.get(f"/v1/erasures/{erasure}", headers=key.headers)).json()
    assert done["counts"]["pseudonyms"] == 1
    await say(client, key, "cust-1", "yan@example.org")
    assert (await stored(resources, key))[-1] == "<EMAIL_ADDRESS_1>"
