"""The proof of an erasure over the API: only once there is one, only for its space, and looked at anew when asked."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.erasing import accept, finish, stands
from tests.integration.logbook import Shelf

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


@pytest.fixture
async def operator(mint: Any) -> Any:
    """Whose key does not go with the person."""
    return await mint(scopes=("operator",))


async def test_a_certificate_is_there_once_the_erasure_is_completed(
    opened: Opened, client: Any, mint: Any, operator: Any
) -> None:
    person = await mint(space=None)
    async with opened(key=person) as book:
        await book.say("My parcel is blue")
        keeper = await mint_in(book, mint)
        erasure = await accept(book.resources, book.space, person.owner, fenced=False)
        early = await client.get(f"/v1/erasures/{erasure}/certificate", headers=keeper.headers)
        assert (early.status_code, early.json()["code"]) == (409, "erasure_not_completed")
        await finish(book.workshop, book.space)
        answer = await client.get(f"/v1/erasures/{erasure}/certificate", headers=keeper.headers)
        assert answer.status_code == 200
        assert answer.json() == (await stands(book.resources, book.space, erasure)).certificate
        verified = (await client.get(f"/v1/erasures/{erasure}/verify", headers=keeper.headers)).json()
        assert (verified["clean"], verified["found"]) == (True, {})
        assert verified["looked_at"]["tables"] > 10
        for what in ("certificate", "verify"):
            foreign = await client.get(f"/v1/erasures/{erasure}/{what}", headers=operator.headers)
            absent = await client.get(f"/v1/erasures/{uuid4()}/{what}", headers=operator.headers)
            assert (
                (foreign.status_code, foreign.json()["code"])
                == (404, "not_found")
                == (
                    absent.status_code,
                    absent.json()["code"],
                )
            )


async def mint_in(book: Any, mint: Any) -> Any:
    """An operator's key in a book's space."""
    async with book.resources.database.begin_everywhere() as tx:
        from models.database import driver

        name = await (await driver(tx)).fetchval("SELECT name FROM spaces WHERE id = $1", book.space)
    return await mint(space=name, scopes=("operator",))


async def test_what_verification_finds_is_erased_again(opened: Opened, client: Any, mint: Any) -> None:
    async with opened() as book:
        await book.say("My parcel is blue")
        keeper = await mint_in(book, mint)
        erasure = await accept(book.resources, book.space, book.key.owner, fenced=False)
        await finish(book.workshop, book.space)
        # A row that somebody brought back behind the service's back.
        await book.write("INSERT INTO subjects (id, space_id) VALUES ($1, $2)", book.key.owner, book.space)
        verified = (await client.get(f"/v1/erasures/{erasure}/verify", headers=keeper.headers)).json()
        assert (verified["clean"], verified["found"]) == (False, {"subjects": 1, "subjects.id": 1})
        assert (await stands(book.resources, book.space, erasure)).state == "incomplete"
        gone = await client.get(f"/v1/erasures/{erasure}/certificate", headers=keeper.headers)
        assert gone.status_code == 409
        await finish(book.workshop, book.space)
        again = await stands(book.resources, book.space, erasure)
        assert (again.state, again.counts["subjects"]) == ("completed", 2)
