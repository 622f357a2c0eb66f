"""An agent is erased: its notes with every version, its proposals. What it learns afterwards is new, and stays."""

from typing import TYPE_CHECKING
from uuid import UUID

from jobs.residue import look
from tests.integration import erasing
from tests.integration.notebook import ROUTE, Notebook, numbered

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

    from jobs.resources import Resources


async def test_an_agent_s_notes_go_at_once_with_every_version_and_a_neighbour_s_stay(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint"
) -> None:
    book = await Notebook(client, resources, mint).open()
    erased, neighbour = await book.agent("support"), await book.agent("sales")
    first = await book.note(erased)
    edited = await book.ask("PATCH", f"{ROUTE}/{first}", erased, {"title": "Show a credit at once"})
    assert edited.status_code == 200
    kept = await book.note(neighbour, **numbered(7))
    proposed = await book.write(erased, **numbered(1), visibility="space")
    assert proposed.status_code == 202
    asked = {"agent": "support", "reason_code": "contract_end"}
    accepted = await client.post("/v1/erasures", json=asked, headers=book.security.headers)
    assert accepted.status_code == 202
    assert await book.ids(erased) == []
    assert (await book.ask("GET", f"{ROUTE}/{first}", erased)).status_code == 404
    left = await book.rows("SELECT agent FROM proposals WHERE space_id = $1", book.space)
    assert [row["agent"] for row in left] == []
    assert await book.ids(neighbour) == [kept]
    new = await book.note(erased, **numbered(3))
    await erasing.finish(resources, book.space)
    assert await book.ids(erased) == [new]
    stands = await erasing.stands(resources, book.space, UUID(accepted.json()["id"]))
    assert (stands.state, {name: stands.counts[name] for name in ("notes", "note_versions", "proposals")}) == (
        "completed",
        {"notes": 1, "note_versions": 2, "proposals": 1},
    )
    assert (await look(resources, stands.target)).clean
