"""What becomes of agent memory when an agent goes, when a person goes whom it should not have named, and when it is old."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from intake import erasure as erasing
from intake.erasure import Wish
from models import accepting
from models.database import driver
from models.dataset import Target, see_expired
from models.registry import DATA_SETS, named
from tests.integration.erasing import finish, stands
from tests.integration.notebook import ROUTE, STEPS, Notebook, numbered

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

    from jobs.resources import Resources

BLOCK, PROPOSALS = "/v1/agent-memory/block", "/v1/agent-memory/proposals"
SETS = ("proposals", "note_versions", "notes", "note_allowances")


@pytest.fixture
async def book(client: "httpx.AsyncClient", resources: "Resources", mint: "Mint") -> Notebook:
    return await Notebook(client, resources, mint).open()


async def counted(book: Notebook, target: Target) -> dict[str, int]:
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        return {one.name: await one.count(connection, target) for one in DATA_SETS if one.name in SETS}


async def each(book: Notebook, act: Callable[..., Any], *names: str) -> dict[str, int]:
    """What each data set deletes, row by row."""
    gone = dict.fromkeys(names, 0)
    for name in names:
        while True:
            async with book.resources.database.begin(book.space) as tx:
                connection = await driver(tx)
                await see_expired(connection)
                rows = await act(named(name), connection)
            if not rows:
                break
            gone[name] += rows
    return gone


async def test_erasing_an_agent_takes_its_notes_in_every_version_and_its_proposals_and_nobody_elses(
    book: Notebook,
) -> None:
    going, staying = await book.agent("going", "v"), await book.agent("staying", "v")
    for key in (going, staying):
        note = await book.note(key, visibility="vendor", **numbered(len(key.id) if key is going else 1))
        await book.ask("PATCH", f"{ROUTE}/{note}", key, {"title": f"Second title of {note}"})
        assert (await book.write(key, title="For all", visibility="space")).status_code == 202
    assert len((await book.ask("GET", BLOCK, staying)).json()["notes"]) == 2
    whose, other = Target(book.space, agent="going"), Target(book.space, agent="staying")
    had, others = await counted(book, whose), await counted(book, other)
    assert had == others == {"proposals": 1, "note_versions": 2, "notes": 1, "note_allowances": 1}
    ask = {"agent": "going", "reason_code": "contract_end"}
    assert (await book.ask("POST", "/v1/erasures", book.security, ask)).status_code == 202
    left = (await book.ask("GET", BLOCK, staying)).json()["notes"]
    assert left == await book.ids(staying)
    assert await book.ids(going) == left
    assert await counted(book, whose) == dict.fromkeys(SETS, 0)
    assert await counted(book, other) == others
    assert "going" not in "\n".join(
        row[0] for row in await book.rows("SELECT n::text FROM notes n WHERE space_id = $1", book.space)
    )


async def test_a_proposal_goes_with_the_conversation_that_it_was_distilled_from(book: Notebook) -> None:
    key = await book.agent("support")
    for at in range(2):
        assert (await book.write(key, **numbered(at), visibility="space")).status_code == 202
    await book.rows(
        "UPDATE proposals SET conversation_id = 77 WHERE space_id = $1 AND title = $2", book.space, numbered(1)["title"]
    )
    whose = Target(book.space, conversations=(77,))
    assert await each(book, lambda one, connection: one.erase(connection, whose, 10), *SETS) == {
        **dict.fromkeys(SETS, 0),
        "proposals": 1,
    }
    assert [row["title"] for row in await book.rows("SELECT title FROM proposals WHERE space_id = $1", book.space)] == [
        numbered(0)["title"]
    ]


async def person(book: Notebook, name: str, account: str) -> dict[str, str]:
    """Somebody whom the space comes to know."""
    handle = {"handle_kind": "account", "handle": account}
    key = await book.mint(book.name, ("profiles:write",))
    answer = await book.ask("PUT", "/v1/subjects", key, {"handles": [handle], "names": [name]})
    assert answer.status_code == 200
    return handle


async def test_what_names_an_erased_person_is_set_aside_for_a_reviewer(book: Notebook) -> None:
    key = await book.agent("support")
    hit = await book.note(key, body="Do it as tiuri fenstra does.")
    old = await book.note(key, title="An old one", body="Account FX-77881 is the example.")
    await book.ask("PATCH", f"{ROUTE}/{old}", key, {"body": "There is no example."})
    clean = await book.note(key, title="Clean", body="Nobody is named here.")
    proposal = (await book.write(key, title="FENSTRA, TIURI", visibility="space")).json()["proposal_id"]
    subject = await person(book, "Tiuri Fenstra", "FX-77881")
    before = (await book.ask("GET", BLOCK, key)).json()["notes"]
    assert set(before) == {hit, old, clean}
    ask = {"subject": subject, "reason_code": "subject_request"}
    erasure = await book.ask("POST", "/v1/erasures", book.security, ask)
    assert erasure.status_code == 202
    assert (await book.ask("GET", BLOCK, key)).json()["notes"] == [clean]
    assert await book.ids(key) == [clean]
    assert set(await book.ids(book.reviewer, status="quarantined")) == {hit, old}
    assert await book.ids(key, status="quarantined") == []
    (receipt,) = await book.receipts("note.quarantined")
    assert (receipt["notes"], receipt["proposals"]) == (2, 1)
    assert set(receipt["ids"]["notes"]) == {hit, old}
    assert receipt["ids"]["proposals"] == [proposal]
    assert receipt["ids"]["erasure"] == erasure.json()["id"]
    for method, path, body in (("PATCH", "", {"title": "x"}), ("POST", "/retire", None), ("GET", "", None)):
        assert (await book.ask(method, f"{ROUTE}/{hit}{path}", key, body)).status_code == 404
    released = await book.ask("POST", f"{ROUTE}/{old}/release", book.reviewer)
    assert (released.status_code, released.json()["status"]) == (200, "active")
    assert (await book.ask("POST", f"{ROUTE}/{old}/release", book.reviewer)).status_code == 404
    assert (await book.ask("DELETE", f"{ROUTE}/{hit}", book.reviewer)).status_code == 204
    as_it_is = await book.ask("POST", f"{PROPOSALS}/{proposal}/approve", book.reviewer)
    assert (as_it_is.status_code, as_it_is.json()["state"]) == (409, "quarantined")
    edits = {"title": "As it is done", "body": "Nobody is named here either."}
    assert (await book.ask("POST", f"{PROPOSALS}/{proposal}/approve", book.reviewer, edits)).status_code == 200
    assert "tiuri" not in (await book.everything()).lower()


async def test_the_certificate_says_what_was_set_aside_and_who_was_named_beside_another_is_found_too(
    book: Notebook,
) -> None:
    key = await book.agent("support")
    note = await book.note(key, body="Do it as tiuri fenstra and odo lindgrave do.")
    proposal = (await book.write(key, title="Lindgrave, Fenstra", visibility="space")).json()["proposal_id"]
    certified = []
    for name, account in (("Tiuri Fenstra", "FX-77884"), ("Odo Lindgrave", "FX-77885")):
        subject = await person(book, name, account)
        ask = {"subject": subject, "reason_code": "subject_request"}
        erasure = UUID((await book.ask("POST", "/v1/erasures", book.security, ask)).json()["id"])
        await finish(book.resources, book.space)
        done = await stands(book.resources, book.space, erasure)
        assert done.certificate is not None
        certified.append(done.certificate["document"]["set_aside"])
    assert certified == [{"notes": 1, "proposals": 1}] * 2
    told = await book.receipts("note.quarantined")
    assert [(one["ids"]["notes"], one["ids"]["proposals"]) for one in told] == [([note], [proposal])] * 2


async def test_an_erasure_that_is_refused_sets_nothing_aside(book: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await book.agent("support")
    note = await book.note(key, body="Do it as tiuri fenstra does.")
    subject = await person(book, "Tiuri Fenstra", "FX-77882")
    lookup = await book.mint(book.name, ("profiles:read",))
    profile = (await book.ask("POST", "/v1/profiles/lookup", lookup, subject)).json()["profile_id"]
    assert (await book.ask("PUT", f"/v1/holds/{profile}", book.security)).status_code < 300
    ask = {"subject": subject, "reason_code": "other"}
    assert (await book.ask("POST", "/v1/erasures", book.security, ask)).json()["code"] == "legal_hold"
    assert await book.ids(key) == [note]


async def test_a_crash_between_the_ledger_and_the_data_loses_no_hit(
    book: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await book.agent("support")
    note = await book.note(key, body="Do it as tiuri fenstra does.")
    await person(book, "Tiuri Fenstra", "FX-77883")
    (row,) = await book.rows("SELECT subject_id FROM names WHERE space_id = $1", book.space)

    async def die(*_: Any) -> None:
        raise OSError("the process goes away")

    wish = Wish(book.space, "subject_request", "key_test", subject=row["subject_id"])
    with monkeypatch.context() as patched:
        patched.setattr(accepting, "prepare", die)
        with pytest.raises(OSError, match="goes away"):
            await erasing.accept(book.resources, wish)
    assert await book.ids(key) == [note]
    await book.resources.keys.pool.execute(
        "UPDATE ledger SET accepted_at = now() - interval '1 hour' WHERE space_id = $1", book.space
    )
    await erasing.finish(book.resources)
    assert await book.ids(key) == []
    assert await book.ids(book.reviewer, status="quarantined") == [note]


async def test_what_was_replaced_or_retired_expires_by_policy_and_what_stands_never(book: Notebook) -> None:
    key = await book.agent("support")
    kept, gone = await book.note(key), await book.note(key, **numbered(1))
    await book.ask("PATCH", f"{ROUTE}/{kept}", key, {"title": "A second title"})
    await book.ask("POST", f"{ROUTE}/{gone}/retire", key)
    waits, decided = [
        (await book.write(key, **numbered(at), visibility="space")).json()["proposal_id"] for at in (5, 6)
    ]
    await book.ask("POST", f"{PROPOSALS}/{decided}/reject", book.reviewer, {"reason_code": "other"})
    for table, column in (("notes", "retired_at"), ("note_versions", "retired_at"), ("proposals", "decided_at")):
        await book.rows(f"UPDATE {table} SET {column} = {column} - interval '40 days' WHERE space_id = $1", book.space)  # noqa: S608 - constants
    assert await book.ids(key, status="retired") == [gone]
    assert (await book.ask("PUT", "/v1/policies/retention", book.security, {"notes": "30d"})).status_code == 200
    assert await book.ids(key, status="retired") == []
    assert (await book.ask("GET", f"{ROUTE}/{gone}", key)).status_code == 404
    versions = (await book.ask("GET", f"{ROUTE}/{kept}/versions", key)).json()["versions"]
    assert [one["title"] for one in versions] == ["A second title"]
    listed = (await book.ask("GET", PROPOSALS, book.reviewer)).json()["proposals"]
    assert [one["id"] for one in listed] == [waits]
    swept = await each(book, lambda one, connection: one.expire(connection, book.space, 1), *SETS[:3])
    assert swept == {"proposals": 1, "note_versions": 2, "notes": 1}
    assert await book.ids(key) == [kept]
    assert (await book.ask("GET", f"{ROUTE}/{kept}", key)).json()["body"] == STEPS["body"]
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)  # as what it makes of the row
        await connection.execute("UPDATE proposals SET created_at = created_at - interval '60 days'")
    assert (await book.ask("GET", f"{PROPOSALS}/{waits}", book.reviewer)).status_code == 404  # nobody decided in time
    assert await each(book, lambda one, connection: one.expire(connection, book.space, 1), "proposals") == {
        "proposals": 1
    }
