"""An agent's notes for its prompt: the same bytes for every customer, as long as the notes are the same, and receipted."""

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from api.app import create_app
from models import agent as agents
from models.database import driver
from tests.integration.notebook import ROUTE, STEPS, Notebook, numbered

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Serving

    from jobs.resources import Resources

BLOCK, SECTION = "/v1/agent-memory/block", "/v1/agent-memory/task-section"


@pytest.fixture
async def book(client: "httpx.AsyncClient", resources: "Resources", mint: "Mint") -> Notebook:
    return await Notebook(client, resources, mint).open()


async def test_a_block_opens_by_saying_whose_notes_these_are(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    answer = await book.ask("GET", BLOCK, key)
    assert answer.json()["block"] == (
        "<agent-memory>\nFrom the agent itself: working notes, not customer data.\n"
        f"- procedure: {STEPS['title']}. {STEPS['body']} [invoice, erp]\n</agent-memory>"
    )
    assert answer.json()["notes"] == [note]
    assert (await book.ask("GET", BLOCK, await book.agent("another"))).json() == {"block": "", "tokens": 0, "notes": []}


async def test_the_bytes_are_the_same_for_every_customer_and_in_another_process(
    book: Notebook, resources: "Resources", serving: "Serving"
) -> None:
    key = await book.agent("support")
    for at in range(6):
        await book.note(key, **numbered(at))
    answers = [
        await book.client.get(BLOCK, headers=key.headers | {"X-Canonical-User": user}) for user in ("ana", "bo", "ana")
    ]
    async with serving(create_app(resources.settings)) as another:
        answers.append(await another.get(BLOCK, headers=key.headers))
    assert {(one.status_code, one.content, one.headers["etag"]) for one in answers} == {
        (200, answers[0].content, answers[0].headers["etag"])
    }
    assert answers[0].headers["cache-control"] == "private, no-cache"


async def test_tags_come_first_then_the_most_revised_then_the_oldest(book: Notebook) -> None:
    key = await book.agent("support")
    first, second, third, tagged = [
        await book.note(key, **numbered(at), tags=["crm"] if at == 3 else []) for at in range(4)
    ]
    await book.ask("PATCH", f"{ROUTE}/{third}", key, {"title": "A better title"})
    assert (await book.ask("GET", BLOCK, key)).json()["notes"] == [third, first, second, tagged]
    for tags in ("CRM, erp", ["erp", "crm"]):
        assert (await book.ask("GET", BLOCK, key, tags=tags)).json()["notes"] == [tagged, third, first, second]
    small = (await book.ask("GET", BLOCK, key, budget=50)).json()
    assert (small["notes"], small["tokens"] <= 50) == ([third], True)
    for budget in (49, 2001):
        assert (await book.ask("GET", BLOCK, key, budget=budget)).status_code == 422


async def test_a_change_is_there_at_the_next_reading_and_until_then_there_is_nothing_new(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    etags = []
    for change in (
        None,
        ("PATCH", f"{ROUTE}/{note}", {"body": "Only refresh_invoice."}),
        ("POST", ROUTE, numbered(1)),
        ("POST", f"{ROUTE}/{note}/retire", None),
    ):
        if change is not None:
            assert (await book.ask(change[0], change[1], key, change[2])).status_code < 300
        fresh = await book.client.get(BLOCK, headers=key.headers | {"If-None-Match": ", ".join(['"x"', *etags])})
        assert fresh.status_code == 200
        etags.append(fresh.headers["etag"])
        again = await book.client.get(BLOCK, headers=key.headers | {"If-None-Match": f"W/{etags[-1]}"})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etags[-1])
    assert len(set(etags)) == 4


async def test_each_reading_leaves_a_receipt_with_what_was_delivered(book: Notebook) -> None:
    key = await book.agent("support")
    note = await book.note(key)
    etag = (await book.ask("GET", BLOCK, key)).headers["etag"]
    assert (await book.client.get(BLOCK, headers=key.headers | {"If-None-Match": etag})).status_code == 304
    await book.ask("GET", SECTION, key, object_types="Invoice")
    told = {"actor": key.id, "ids": {"agent": "support", "notes": [note]}, "notes": 1}
    assert await book.receipts("agent_memory.block_read") == [told] * 3


async def test_turned_off_it_gives_nothing_at_the_very_next_reading(book: Notebook) -> None:
    key = await book.agent("support")
    await book.note(key)
    assert (await book.ask("GET", BLOCK, key)).json()["notes"]
    await book.features(agent_memory=False)
    assert (await book.ask("GET", BLOCK, key)).json()["code"] == "feature_off"
    assert len(await book.receipts("agent_memory.block_read")) == 1


async def test_a_task_section_has_what_its_object_types_name_within_two_hundred_tokens(book: Notebook) -> None:
    key = await book.agent("support")
    body = "It wants the header to be there. " * 15
    made = [
        await book.note(
            key, title=f"Title {at}", body=f"{body}{numbered(at)['title']}", tags=["order" if at % 2 else "x"]
        )
        for at in range(6)
    ]
    answer = (await book.ask("GET", SECTION, key, object_types="Order,invoice")).json()
    assert answer["notes"] == [made[1]]
    assert answer["tokens"] <= 200
    assert (await book.ask("GET", SECTION, key)).status_code == 422


async def test_an_agent_that_moves_to_another_vendor_reads_what_is_that_vendors(book: Notebook) -> None:
    one, two = await book.agent("a", "v1"), await book.agent("b", "v2")
    first = await book.note(one, **numbered(1), visibility="vendor")
    second = await book.note(two, **numbered(2), visibility="vendor")
    mover = await book.agent("mover")
    seen = []
    for vendor in ("v1", "v2"):
        async with book.resources.database.begin(book.space) as tx:
            await agents.register(await driver(tx), book.space, "mover", vendor, None, None)
        seen.append((await book.ask("GET", BLOCK, mover)).json()["notes"])
    assert seen == [[first], [second]]


CALLERS: dict[str, tuple[str | None, str | None]] = {
    "its own agent": ("a1", "v1"),
    "an agent of its vendor": ("a2", "v1"),
    "another vendor's agent": ("b1", "v2"),
    "an agent of no vendor": ("c1", None),
    "another vendor's agent of that name": ("a1", "v2"),
}
MAY = {
    ("source", "its own agent"),
    ("vendor", "its own agent"),
    ("vendor", "an agent of its vendor"),
    *product(["space"], CALLERS),
}


async def openly(book: Notebook, note: str) -> None:
    """As a reviewer opens it to all."""
    await book.rows(
        "UPDATE note_versions SET visibility = 'space' WHERE space_id = $1 AND note_id::text = $2",
        book.space,
        dashed(note),
    )


def dashed(note: str) -> str:
    from uuid import UUID

    return str(UUID(note.removeprefix("note_")))


@pytest.mark.parametrize("visibility", ["source", "vendor", "space"])
@pytest.mark.parametrize("caller", CALLERS)
async def test_every_way_to_read_goes_by_who_may(book: Notebook, visibility: str, caller: str) -> None:
    writer, name = await book.agent("a1", "v1"), CALLERS[caller]
    note = await book.note(writer, visibility="vendor" if visibility == "space" else visibility)
    if visibility == "space":
        await openly(book, note)
    reader, may = await book.agent(*name), (visibility, caller) in MAY
    assert (note in await book.ids(reader)) is may
    assert ((await book.ask("GET", f"{ROUTE}/{note}", reader)).status_code == 200) is may
    assert ((await book.ask("GET", f"{ROUTE}/{note}/versions", reader)).status_code == 200) is may
    found: Any = await book.ask("POST", "/v1/agent-memory/search", reader, {"query": "credit invoice"})
    assert (note in {one["id"] for one in found.json()["notes"]}) is may
    assert (note in (await book.ask("GET", BLOCK, reader)).json()["notes"]) is may
    assert (note in (await book.ask("GET", SECTION, reader, object_types="erp")).json()["notes"]) is may
    twin = await book.write(reader)
    assert (twin.status_code == 409) is may  # nobody learns by writing what they may not read
    assert note in await book.ids(book.reviewer)


async def test_an_earlier_version_that_was_for_the_agent_alone_stays_so(book: Notebook) -> None:
    writer, peer = await book.agent("a1", "v1"), await book.agent("a2", "v1")
    note = await book.note(writer)
    await book.ask("PATCH", f"{ROUTE}/{note}", writer, {"visibility": "vendor", "title": "For all of us"})
    seen = [
        [one["version"] for one in (await book.ask("GET", f"{ROUTE}/{note}/versions", key)).json()["versions"]]
        for key in (writer, peer)
    ]
    assert seen == [[1, 2], [2]]


async def test_the_context_begins_with_the_notes_and_ends_with_the_tasks(book: Notebook) -> None:
    scopes = ("memory:read", "agent_memory:read", "agent_memory:write")
    key = await book.mint(book.name, scopes, agent="support")
    ask = {"agent": "support", "conversation_id": "c1", "token_budget": 400, "object_types": ["Order"]}
    body = "It wants the header to be there. " * 30
    general = await book.note(key, **numbered(1))
    for at in (2, 3):
        await book.note(key, title=f"Of orders {at}", body=f"{body}{numbered(at)['title']}", tags=["order"])
    answer = (await book.ask("POST", "/v1/context", key, ask)).json()
    assert [part["name"] for part in answer["parts"]] == ["agent_memory", "observations", "task_section"]
    assert answer["tokens"] <= 400
    assert numbered(1)["title"] in answer["parts"][0]["text"]
    delivered = [receipt["ids"]["notes"] for receipt in await book.receipts("agent_memory.block_read")]
    assert general in delivered[0]
    assert not set(delivered[0]) & set(delivered[1])
    without = await book.mint(book.name, ("memory:read",), agent="support")
    assert "agent_memory" not in (await book.ask("POST", "/v1/context", without, ask)).text
    await book.features(agent_memory=False)
    assert "agent_memory" not in (await book.ask("POST", "/v1/context", key, ask)).text
