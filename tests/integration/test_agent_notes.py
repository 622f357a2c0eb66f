"""Notes of agents: written, edited, retired, found and taken out; never about a person, never past a limit."""

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.notebook import ROUTE, STEPS, Notebook, numbered

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

    from jobs.resources import Resources


@pytest.fixture
async def book(client: "httpx.AsyncClient", resources: "Resources", mint: "Mint") -> Notebook:
    return await Notebook(client, resources, mint).open()


async def test_a_note_is_kept_as_it_was_said_and_read_by_its_agent(book: Notebook) -> None:
    key = await book.agent("support")
    answer = await book.write(key, tags=["Invoice", "erp", "ERP"], evidence={"conversation_id": "thread-1"})
    assert answer.status_code == 201
    note = answer.json()
    assert {name: note[name] for name in ("kind", "title", "body", "tags")} == STEPS
    assert (note["agent"], note["status"], note["version"], note["visibility"]) == ("support", "active", 1, "source")
    assert note["similar"] == []
    read = await book.ask("GET", f"{ROUTE}/{note['id']}", key)
    assert read.json() == {name: value for name, value in note.items() if name != "similar"}
    assert await book.receipts("note.created") == [
        {"actor": key.id, "ids": {"note": note["id"], "agent": "support"}, "version": 1}
    ]
    assert "thread-1" not in json.dumps(note["evidence"])


async def test_evidence_is_equal_for_one_conversation_and_no_id_of_it(book: Notebook) -> None:
    key = await book.agent("support")
    shown = [
        (await book.write(key, **numbered(at), evidence=one)).json()["evidence"]["id"]
        for at, one in enumerate(
            ({"conversation_id": "+351 912 345 678"}, {"conversation_id": "+351 912 345 678"}, {"task_id": "t"})
        )
    ]
    assert shown[0] == shown[1] != shown[2]
    assert "912 345" not in await book.everything()


async def test_until_security_turns_it_on_there_is_no_agent_memory(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    await book.features(agent_memory=False)
    for method, path, body in (
        ("GET", ROUTE, None),
        ("POST", ROUTE, STEPS),
        ("GET", f"{ROUTE}/{note}", None),
        ("PATCH", f"{ROUTE}/{note}", {"title": "Another"}),
        ("POST", f"{ROUTE}/{note}/retire", None),
        ("GET", f"{ROUTE}/{note}/versions", None),
        ("POST", "/v1/agent-memory/search", {"query": "credit"}),
    ):
        answer = await book.ask(method, path, key, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "feature_off"), path
    assert (await book.ask("DELETE", f"{ROUTE}/{note}", book.reviewer)).status_code == 204


async def test_every_edit_is_a_version_and_earlier_ones_stay_to_be_read(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    answer = await book.ask(
        "PATCH", f"{ROUTE}/{note}", key, {"body": "Call post_credit, then refresh_invoice.", "version": 1}
    )
    assert (answer.status_code, answer.json()["version"], answer.json()["title"]) == (200, 2, STEPS["title"])
    stale = await book.ask("PATCH", f"{ROUTE}/{note}", key, {"title": "Too late", "version": 1})
    assert (stale.status_code, stale.json()["code"], stale.json()["version"]) == (409, "note_changed", 2)
    versions = (await book.ask("GET", f"{ROUTE}/{note}/versions", key)).json()["versions"]
    assert [(one["version"], one["body"]) for one in versions] == [(1, STEPS["body"]), (2, answer.json()["body"])]
    first = (await book.ask("GET", f"{ROUTE}/{note}/versions", key, limit=1)).json()
    assert (len(first["versions"]), first["next"]) == (1, 1)
    assert [one["version"] for one in await book.receipts("note.edited")] == [2]


async def test_an_agent_edits_and_retires_only_its_own(book: Notebook) -> None:
    mine, other = await book.agent("a", "v"), await book.agent("b", "v")
    note = await book.note(mine, visibility="vendor")
    assert await book.ids(other) == [note]
    for method, path, body in (("PATCH", "", {"title": "Mine now"}), ("POST", "/retire", None)):
        assert (await book.ask(method, f"{ROUTE}/{note}{path}", other, body)).status_code == 404
        assert (await book.ask(method, f"{ROUTE}/{note}{path}", mine, body, agent="b")).status_code == 404
    assert (await book.ask("GET", f"{ROUTE}/{note}", mine)).json()["version"] == 1


async def test_what_is_retired_is_found_only_where_it_is_asked_for(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    for _ in range(2):
        answer = await book.ask("POST", f"{ROUTE}/{note}/retire", key)
        assert (answer.status_code, answer.json()["status"]) == (200, "retired")
    assert len(await book.receipts("note.retired")) == 1
    assert (await book.ids(key), await book.ids(key, status="retired")) == ([], [note])
    found = await book.ask("POST", "/v1/agent-memory/search", key, {"query": "credit"})
    assert found.json()["notes"] == []
    assert (await book.ask("PATCH", f"{ROUTE}/{note}", key, {"title": "Again"})).json()["code"] == "note_changed"
    assert await book.note(key) != note  # what it said may be said again


async def test_a_reviewer_deletes_every_version_and_a_key_of_an_agent_never_does(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    await book.ask("PATCH", f"{ROUTE}/{note}", key, {"title": "A second title"})
    bound = await book.mint(book.name, ("agent_memory:review",), agent="support")
    refused = await book.ask("DELETE", f"{ROUTE}/{note}", bound)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    assert [(await book.ask("DELETE", f"{ROUTE}/{note}", book.reviewer)).status_code for _ in "12"] == [204, 404]
    assert await book.rows("SELECT FROM note_versions WHERE space_id = $1", book.space) == []
    assert [one["versions"] for one in await book.receipts("note.deleted")] == [2]


async def test_the_same_in_other_letters_is_a_duplicate_and_nearly_the_same_is_told(book: Notebook) -> None:
    key, other = await book.agent("support"), await book.agent("sales")
    note = await book.note(key)
    answer = await book.write(key, title="  SHOW a crédit, on the INVOICE!", kind="pitfall", tags=[])
    assert (answer.status_code, answer.json()["code"], answer.json()["note"]) == (409, "duplicate_note", note)
    near = await book.write(key, body=STEPS["body"] + " Twice is harmless.")
    assert (near.status_code, near.json()["similar"]) == (201, [note])
    assert (await book.write(other)).json()["similar"] == []  # what it cannot read is no duplicate
    edited = await book.ask("PATCH", f"{ROUTE}/{near.json()['id']}", key, {"body": STEPS["body"]})
    assert (edited.status_code, edited.json()["note"]) == (409, note)


async def test_of_forty_at_once_exactly_twenty_are_kept_and_the_rest_told_when(book: Notebook) -> None:
    key = await book.agent("support")
    answers = await asyncio.gather(*(book.ask("POST", ROUTE, key, numbered(at)) for at in range(40)))
    assert Counter(one.status_code for one in answers) == {201: 20, 429: 20}
    late = next(one for one in answers if one.status_code == 429)
    assert (late.json()["code"], late.json()["limit"], late.json()["maximum"]) == ("note_limit", "notes_per_hour", 20)
    assert 0 < int(late.headers["retry-after"]) <= 3600
    edit = await book.ask("PATCH", f"{ROUTE}/{(await book.ids(key))[0]}", key, {"title": "An edit counts"})
    assert edit.status_code == 429
    assert (await book.write(await book.agent("another"))).status_code == 201
    await book.rows(
        "UPDATE note_allowances SET spent[1] = now() - interval '61 minutes' WHERE space_id = $1", book.space
    )
    again = [(await book.ask("POST", ROUTE, key, numbered(at))).status_code for at in (50, 51)]
    assert again == [201, 429]


async def test_the_ceiling_holds_among_writers_at_once_and_retiring_makes_room(book: Notebook) -> None:
    await book.features(note_ceiling=5, notes_per_hour=100)
    key = await book.agent("support")
    answers = await asyncio.gather(*(book.ask("POST", ROUTE, key, numbered(at)) for at in range(40)))
    assert Counter(one.status_code for one in answers) == {201: 5, 409: 35}
    full = next(one for one in answers if one.status_code == 409)
    assert (full.json()["code"], full.json()["limit"], full.json()["maximum"]) == ("note_limit", "note_ceiling", 5)
    await book.ask("POST", f"{ROUTE}/{(await book.ids(key))[0]}/retire", key)
    assert (await book.ask("POST", ROUTE, key, numbered(90))).status_code == 201
    edit = await book.ask("PATCH", f"{ROUTE}/{(await book.ids(key))[0]}", key, {"title": "An edit takes no room"})
    assert edit.status_code == 200


PERSONAL = {
    "email_address": ("Ask ana.souza@example.org for access", "ana.souza"),
    "phone_number": ("Call +351 912 345 678 when it fails", "912 345 678"),
    "cpf": ("Test with CPF 104.332.181-00", "104.332.181"),
    "credit_card": ("The card 4539 3103 4131 6474 always works", "4539 3103"),
    "person_name": ("My name is Beatriz Souza, I wrote this", "Beatriz"),
}


# A tag has no capitals, by which a name that nobody registered is told.
PLACES = [
    (kind, member)
    for kind in PERSONAL
    for member in ("title", "body", "tags")
    if (kind, member) != ("person_name", "tags")
]


@pytest.mark.parametrize(("kind", "member"), PLACES)
async def test_personal_data_is_refused_by_kind_and_nothing_of_it_is_anywhere(
    book: Notebook, capfd: pytest.CaptureFixture[str], kind: str, member: str
) -> None:
    text, canary = PERSONAL[kind]
    key = await book.agent("support")
    said: Any = [text] if member == "tags" else text
    answer = await book.write(key, **{member: said})
    assert (answer.status_code, answer.json()["code"]) == (422, "personal_data_in_agent_memory")
    assert answer.json()["kinds"] == [kind]
    assert set(answer.json()) == {"type", "title", "status", "code", "instance", "kinds"}
    note = await book.note(key)
    edit = await book.ask("PATCH", f"{ROUTE}/{note}", key, {member: said})
    assert (edit.status_code, edit.json()["kinds"]) == (422, [kind])
    out = capfd.readouterr()
    for place in (answer.text, edit.text, await book.everything(), out.out, out.err):
        assert canary not in place
        assert canary.lower() not in place


async def test_a_name_that_the_space_knows_is_told_as_any_other_name(book: Notebook) -> None:
    key = await book.agent("support")
    people = await book.mint(book.name, ("profiles:write",))
    wanted = {"handles": [{"handle_kind": "account", "handle": "wolke77"}], "names": ["Tiuri Fenstra"]}
    assert (await book.ask("PUT", "/v1/subjects", people, wanted)).status_code == 200
    for text in ("As tiuri fenstra does it", "It was WOLKE77 again"):
        for said in ({"body": text}, {"tags": [text]}, {"title": text}):
            answer = await book.write(key, **said)
            assert (answer.status_code, answer.json()["kinds"]) == (422, ["person_name"])
    assert (
        await book.write(
            await (await Notebook(book.client, book.resources, book.mint).open()).agent("x"),
            body="As tiuri fenstra does it",
        )
    ).status_code == 201


async def test_organisations_places_and_look_alikes_are_no_personal_data(book: Notebook) -> None:
    key = await book.agent("support")
    for at, text in enumerate(
        (
            "The Lisbon branch of Acme Ltda books at 10:30 since 2026-03-02",
            "Order 2125550147 needs version 1.12.3 of the client",
            "The proxy listens on 127.0.0.1:8080 and 10.0.0.7",
            "Prices over 1,299.00 EUR go to the Berlin office",
        )
    ):
        assert (await book.write(key, title=f"Number {at}", body=text)).status_code == 201, text


async def test_a_sixty_first_refusal_within_the_hour_says_nothing_any_more(book: Notebook) -> None:
    key = await book.agent(None)
    said = [book.write(key, body="Write to ana@example.org", agent=f"agent-{at}") for at in range(70)]
    answers = await asyncio.gather(*said)
    assert Counter(one.status_code for one in answers) == {422: 60, 429: 10}
    clean = await book.write(key, agent="agent-new")
    assert (clean.status_code, clean.json()["limit"], clean.json()["maximum"]) == (429, "refusals_per_hour", 60)
    assert (await book.write(await book.agent("support"))).status_code == 201
    await book.features(refusals_per_hour=61)
    more = [(await book.write(key, body="Write to ana@example.org", agent="a")).status_code for _ in "12"]
    assert more == [422, 429]


async def test_words_find_what_the_agent_may_read_and_leave_a_receipt(book: Notebook) -> None:
    key, other = await book.agent("support"), await book.agent("sales")
    note = await book.note(key)
    await book.note(key, **numbered(1), tags=["header"])
    secret = await book.note(other, title="Credit lines", body="A credit line needs two approvals.")
    found = (await book.ask("POST", "/v1/agent-memory/search", key, {"query": "how do I CREDIT an invoice?"})).json()[
        "notes"
    ]
    assert found[0]["id"] == note
    assert secret not in {one["id"] for one in found}
    tagged = await book.ask("POST", "/v1/agent-memory/search", key, {"query": "endpoint header", "tags": ["Header"]})
    assert len(tagged.json()["notes"]) == 1
    for odd in ("'", "a:* & !b | (", "\\", "日本", "   '  ", "x" * 2_100):
        assert (await book.ask("POST", "/v1/agent-memory/search", key, {"query": odd})).status_code == 200
    (first, *_) = await book.receipts("agent_memory.searched")
    assert (first["ids"]["agent"], first["ids"]["notes"], first["notes"]) == (
        "support",
        [one["id"] for one in found],
        len(found),
    )


async def test_lists_go_on_from_page_to_page(book: Notebook) -> None:
    key = await book.agent("support")
    made = [await book.note(key, **numbered(at)) for at in range(5)]
    first = (await book.ask("GET", ROUTE, key, limit=3)).json()
    assert [one["id"] for one in first["notes"]] == made[:3]
    rest = (await book.ask("GET", ROUTE, key, limit=3, after=first["next"])).json()
    assert [one["id"] for one in rest["notes"]] == made[3:]
    assert "next" not in rest
    assert (await book.ask("GET", ROUTE, key, after=f"note_{'0' * 32}")).status_code == 404


async def test_an_operator_takes_everything_out(book: Notebook) -> None:
    key = await book.agent("support", "v")
    note = await book.note(key)
    await book.ask("PATCH", f"{ROUTE}/{note}", key, {"title": "Its second title"})
    assert (await book.write(key, **numbered(3), visibility="space")).status_code == 202
    answer = await book.ask("GET", "/v1/agent-memory/export", book.security)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["type"] for one in lines] == ["note", "proposal"]
    assert [one["title"] for one in lines[0]["versions"]] == [STEPS["title"], "Its second title"]
    assert (lines[0]["id"], lines[0]["vendor"], lines[1]["title"]) == (note, "v", numbered(3)["title"])
    assert [one["versions"] for one in await book.receipts("agent_memory.exported")] == [2]


async def test_what_is_no_note_is_refused_by_its_path(book: Notebook) -> None:
    key, unbound = await book.agent("support"), await book.agent(None)
    for said, path in (
        ({"title": "x" * 121}, "title"),
        ({"body": "x" * 2_001}, "body"),
        ({"title": "  "}, "title"),
        ({"tags": ["x"] * 9}, "tags"),
        ({"tags": [""]}, "tags[0]"),
        ({"kind": "diary"}, "kind"),
        ({"visibility": "everybody"}, "visibility"),
        ({"evidence": {}}, "evidence"),
        ({"evidence": {"task_id": "t", "conversation_id": "c"}}, "evidence"),
    ):
        answer = await book.write(key, **said)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
    assert (await book.write(unbound)).json()["errors"][0]["path"] == "agent"
    assert (await book.ask("GET", ROUTE, unbound)).status_code == 422
    assert (await book.write(key, agent="sales")).status_code == 404
    assert await book.ids(key) == []
