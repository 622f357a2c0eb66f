"""Names that a space registered: kept sealed, masked in the person's own turns, and told of in anybody's text."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from intake import called as callings
from intake.called import Called
from intake.identity import People
from intake.known_names import kinds_found
from models.content import open_turn
from models.database import driver
from models.subject import HandleKind
from models.turn import StoredTurn

if TYPE_CHECKING:
    from uuid import UUID

    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources
    from memory.turn import Turn

SCOPES = ("turns:write", "profiles:read", "profiles:write", "operator")
LONG = "Maria de Fátima Campos da Silva"


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=SCOPES, admin=True, allow_impersonation=True)


async def register(client: "httpx.AsyncClient", key: "Minted", handle: str, *names: str) -> dict[str, Any]:
    said = {"handles": [{"handle_kind": "canonical_user", "handle": handle}], "names": list(names)}
    answer = await client.put("/v1/subjects", json=said, headers=key.headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def say(client: "httpx.AsyncClient", key: "Minted", who: str, *texts: str, **more: Any) -> None:
    turns = [{"role": "user", "content": text, **more} for text in texts]
    said = {"agent": "support", "conversation_id": "c1", "turns": turns}
    answer = await client.post("/v1/turns", json=said, headers=key.headers | {"X-Canonical-User": who})
    assert answer.status_code == 202, answer.text


async def stored(resources: "Resources", key: "Minted") -> list[str]:
    """The text of every turn of the space."""
    return [turn.text for turn in await opened(resources, key)]


async def opened(resources: "Resources", key: "Minted") -> "list[Turn]":
    """Every turn of the space."""
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch("SELECT * FROM turns WHERE space_id = $1 ORDER BY id", key.space)
    turns = [StoredTurn(**dict(row)) for row in rows]
    return [open_turn(turn, await resources.keys.key(turn.subject_id)) for turn in turns]


async def test_a_person_s_own_turns_are_masked_with_what_they_are_called(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await register(client, key, "mia_li_3668", "Mia Li-Okonkwo", LONG)
    await say(client, key, "mia_li_3668", "okonkwo here, user mia_li_3668", "ask maria de fatima campos da silva")
    await say(client, key, "somebody else", "okonkwo here, user mia_li_3668")
    texts = await stored(resources, key)
    assert texts[:2] == ["<PERSON> here, user <HANDLE>", "ask <PERSON>"]
    assert texts[2] == "okonkwo here, user mia_li_3668"


async def test_whoever_speaks_under_a_name_that_is_all_personal_speaks_under_none(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await register(client, key, "cust-1", "Mia Okonkwo")
    for name in ("Mia", "mia@example.org", "Dr Okonkwo", "Rui"):
        await say(client, key, "cust-1", "good morning", name=name)
    assert [turn.name for turn in await opened(resources, key)] == [None, None, "Dr <PERSON>", "Rui"]


@pytest.mark.parametrize("handle", ["you", "Support", "42", "1234", "ab"])
async def test_a_handle_that_would_hit_anything_is_not_looked_for(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", handle: str
) -> None:
    text = f"can {handle} help me with {handle.lower()}?"
    await say(client, key, handle, text)
    assert await stored(resources, key) == [text]


async def test_a_name_counts_from_its_registration_on_and_by_confirmed_links(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await say(client, key, "cust-1", "it is okonkwo")
    await register(client, key, "cust-2", "Mia Okonkwo")
    await say(client, key, "cust-1", "it is okonkwo")
    linked = [{"handle_kind": "canonical_user", "handle": one} for one in ("cust-1", "cust-2")]
    await client.put("/v1/subjects", json={"handles": linked}, headers=key.headers)
    await say(client, key, "cust-1", "it is okonkwo of cust-2")
    assert await stored(resources, key) == ["it is okonkwo", "it is okonkwo", "it is <PERSON> of <HANDLE>"]


async def test_another_process_masks_a_new_name_after_its_next_look(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Called(resources.database, resources.keys)
    subject = await People(resources.database, resources.keys).subject(
        key.space, key.lookup_key, (HandleKind.CANONICAL_USER, "cust-1"), make=True
    )
    assert subject is not None
    before = await elsewhere.names(key.space, subject, subject)
    assert await elsewhere.names(key.space, subject, subject) is before
    await register(client, key, "cust-1", "Mia Okonkwo")
    monkeypatch.setattr(callings, "_FRESH", -1.0)
    assert "okonkwo" in (await elsewhere.names(key.space, subject, subject)).entries
    assert "okonkwo" not in before.entries


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Refunds for MIA OKONKWO need a form", True),
        (f"{LONG} pays late", True),
        ("Maria de Fátima Campos da Costa pays late", False),
        ("Okonkwo", False),
        ("王小明想退款", True),
        ("look up mia_li_3668 first", True),
        ("the account is 3668", False),
        ("May I ask", False),
        ("ask May about it", True),
        ("", False),
        ("a procedure without anybody in it, " * 300, False),
        ("a procedure of many words. " * 2_000 + "Mia Okonkwo", True),
    ],
)
async def test_anybody_s_text_is_searched_exactly_for_whom_the_space_knows(
    client: "httpx.AsyncClient",
    resources: "Resources",
    searched: Callable[[str], Any],
    text: str,
    found: bool,  # noqa: FBT001 - a table
) -> None:
    assert await searched(text) == (("person_name",) if found else ())


@pytest.fixture(scope="module")
async def searched(client: "httpx.AsyncClient", resources: "Resources", mint: "Mint") -> Callable[[str], Any]:
    key = await mint(scopes=SCOPES)
    await register(client, key, "mia_li_3668", "Mia Okonkwo", LONG, "王小明", "May")

    async def find(text: str, space: int = key.space, lookup_key: "UUID" = key.lookup_key) -> Any:
        return await kinds_found(resources.database, resources.keys, space, lookup_key, text)

    return find


async def test_another_space_knows_nobody_of_this_one(resources: "Resources", key: "Minted", searched: Any) -> None:
    assert await searched("Mia Okonkwo, mia_li_3668", key.space, key.lookup_key) == ()


async def test_names_are_counted_sealed_and_erased_and_then_nobody_is_known_by_them(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    name = f"Zoraide {uuid4().hex[:6]}x Quental"
    told = await register(client, key, "cust-9", name, name.upper(), "Zo Quental")
    assert told["names"] == 2
    profile = (await client.get(f"/v1/profiles/{told['profile_id']}", headers=key.headers)).json()
    assert profile["counts"]["names"] == 2
    async with resources.database.begin(key.space) as tx:
        rows = await (await driver(tx)).fetch("SELECT * FROM names WHERE space_id = $1", key.space)
        receipt = await (await driver(tx)).fetchval(
            "SELECT counts::text FROM receipts WHERE space_id = $1 AND action = 'subject.linked'", key.space
        )
    assert "uental" not in repr(rows).casefold()
    assert receipt == '{"names": 2}'
    wish = {"subject": {"handle_kind": "canonical_user", "handle": "cust-9"}, "reason_code": "subject_request"}
    erasure = (await client.post("/v1/erasures", json=wish, headers=key.headers)).json()["id"]
    counts = (await client.get(f"/v1/erasures/{erasure}", headers=key.headers)).json()["counts"]
    assert counts["names"] == 2
    assert await kinds_found(resources.database, resources.keys, key.space, key.lookup_key, name) == ()
    await say(client, key, "cust-9", f"I am {name.split(maxsplit=1)[0]}")
    assert await stored(resources, key) == [f"I am {name.split(maxsplit=1)[0]}"]


@pytest.mark.parametrize("names", [["!!"], ["x" * 201], [""], [7], ["Ana"] * 51])
async def test_what_is_no_name_is_refused_and_not_repeated(
    client: "httpx.AsyncClient", key: "Minted", names: list[Any]
) -> None:
    said = {"handles": [{"handle_kind": "account", "handle": "a-1"}], "names": names}
    answer = await client.put("/v1/subjects", json=said, headers=key.headers)
    assert answer.status_code == 422
    assert "xxx" not in answer.text


async def test_a_person_has_a_bounded_number_of_names(client: "httpx.AsyncClient", key: "Minted") -> None:
    for number in range(4):
        await register(client, key, "cust-1", *(f"Ana {letter}{number}x" for letter in "abcdefghij" * 5))
        await register(
            client, key, "cust-1", *(f"Ana{number} {chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(40))
        )
    said = {"handles": [{"handle_kind": "canonical_user", "handle": "cust-1"}], "names": ["Bea One", "Bea Two"]}
    answer = await client.put("/v1/subjects", json=said, headers=key.headers)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "names")
