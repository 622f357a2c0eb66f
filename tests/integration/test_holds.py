"""A hold is on a person, whichever of their handles it was placed on, and whoever deletes, by whatever path."""

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest

from intake import erasure as erasing
from intake.erasure import Wish
from models import hold as holds
from models import link as links
from models.accepting import Held
from models.database import driver
from models.dataset import see_expired
from models.registry import DATA_SETS

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    scopes = ("turns:write", "memory:read", "operator", "profiles:write", "profiles:read", "receipts:read")
    return await mint(scopes=scopes, admin=True, allow_impersonation=True)


class Desk:
    """A space in which people speak and an operator works."""

    def __init__(self, client: "httpx.AsyncClient", resources: "Resources", key: "Minted") -> None:
        self.client, self.resources, self.key = client, resources, key

    async def say(self, person: str, conversation: str = "c1", **headers: str) -> str:
        """Answers the profile of the person whose log it is."""
        body = {"agent": "support", "conversation_id": conversation, "turns": [{"role": "user", "content": "hello"}]}
        sent = await self.client.post(
            "/v1/turns", json=body, headers=self.key.headers | {"X-Canonical-User": person} | headers
        )
        assert sent.status_code == 202
        return await self.profile("canonical_user", person)

    async def profile(self, kind: str, handle: str) -> str:
        asked = {"handle_kind": kind, "handle": handle}
        found = await self.client.post("/v1/profiles/lookup", json=asked, headers=self.key.headers)
        profile: str = found.json()["profile_id"]
        return profile

    async def link(self, *handles: str, confirmed: bool = True) -> None:
        named = [{"handle_kind": "canonical_user", "handle": one, "confirmed": confirmed} for one in handles]
        assert (
            await self.client.put("/v1/subjects", json={"handles": named}, headers=self.key.headers)
        ).status_code == 200

    async def hold(self, profile: str) -> "httpx.Response":
        return await self.client.put(f"/v1/holds/{profile}", headers=self.key.headers)

    async def lift(self, profile: str) -> "httpx.Response":
        return await self.client.delete(f"/v1/holds/{profile}", headers=self.key.headers)

    async def holds(self) -> list[tuple[str, set[str]]]:
        listed = (await self.client.get("/v1/holds", headers=self.key.headers)).json()["holds"]
        return [(one["profile_id"], set(one["covers"])) for one in listed]

    async def erase(
        self, person: str, conversation: str | None = None, kind: str = "canonical_user"
    ) -> tuple[int, str]:
        named = {"handle_kind": kind, "handle": person}
        what = (
            {"conversation": {"subject": named, "conversation_id": conversation}}
            if conversation
            else {"subject": named}
        )
        answer = await self.client.post("/v1/erasures", json=what | {"reason_code": "other"}, headers=self.key.headers)
        return answer.status_code, answer.json().get("code", answer.json().get("id"))

    async def execute(self, query: str, *values: Any) -> list[Any]:
        async with self.resources.database.begin(self.key.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            return await connection.fetch(query, *values)

    async def age(self) -> None:
        """Everything is past its term."""
        await self.execute(
            "UPDATE turns SET created_at = now() - interval '40 days' WHERE space_id = $1", self.key.space
        )
        terms = {"turns": "30d"}
        assert (
            await self.client.put("/v1/policies/retention", json=terms, headers=self.key.headers)
        ).status_code == 200

    async def sweep(self) -> int:
        async with self.resources.database.begin(self.key.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            return sum([await one.expire(connection, self.key.space, 1_000) for one in DATA_SETS])

    async def by_hand(self) -> None:
        """As the app role, whatever a DELETE may reach."""
        for table in (
            "quarantine",
            "turns",
            "observations",
            "generations",
            "links",
            "exports",
            "conversations",
            "logs",
        ):
            await self.execute(f"DELETE FROM {table} WHERE space_id = $1", self.key.space)  # noqa: S608 - of this test
        for table in ("names", "handles"):
            await self.execute(f"DELETE FROM {table} WHERE space_id = $1", self.key.space)  # noqa: S608 - of this test

    async def rows(self, profile: str) -> list[int]:
        """What a person has: turns in their log, conversations, handles."""
        query = """
            SELECT (SELECT count(*) FROM turns t JOIN logs l ON l.id = t.log_id WHERE l.subject_id = $1),
                (SELECT count(*) FROM conversations WHERE subject_id = $1), (SELECT count(*) FROM handles WHERE subject_id = $1)
        """
        return list((await self.execute(query, UUID(profile.removeprefix("sub_"))))[0])


@pytest.fixture
def desk(client: "httpx.AsyncClient", resources: "Resources", key: "Minted") -> Desk:
    return Desk(client, resources, key)


@pytest.mark.parametrize("linked_first", [True, False])
async def test_a_hold_covers_whoever_is_the_same_person_before_it_or_after(desk: Desk, *, linked_first: bool) -> None:
    home, work, far, bo = [await desk.say(person) for person in ("ana", "ana.work", "ana.far", "bo")]
    if not linked_first:
        await desk.hold(home)
    await desk.link("ana", "ana.work")
    await desk.link("ana.work", "ana.far")
    await desk.link("ana", "bo", confirmed=False)
    if linked_first:
        assert (await desk.hold(home)).json() == {"profile_id": home, "held": True}
    assert await desk.holds() == [(home, {home, work, far})]
    await desk.age()
    await desk.sweep()
    await desk.by_hand()
    assert [await desk.rows(one) for one in (home, work, far, bo)] == [[1, 1, 1], [1, 1, 1], [1, 1, 1], [0, 0, 0]]
    for person in ("ana", "ana.work", "ana.far"):
        assert await desk.erase(person) == (409, "legal_hold")
        assert await desk.erase(person, "c1") == (409, "legal_hold")
    assert (await desk.lift(work)).status_code == 404
    assert (await desk.lift(home)).json() == {"profile_id": home, "held": False}
    assert await desk.sweep() == 3
    assert (await desk.erase("ana.far"))[0] == 202


async def test_of_two_holds_each_ends_for_itself(desk: Desk) -> None:
    home, work = [await desk.say(person) for person in ("ana", "ana.work")]
    await desk.hold(home)
    await desk.hold(work)
    await desk.link("ana", "ana.work")
    assert sorted(await desk.holds()) == sorted([(home, {home, work}), (work, {home, work})])
    assert (await desk.lift(home)).json() == {"profile_id": home, "held": True}
    assert await desk.erase("ana") == (409, "legal_hold")
    assert (await desk.lift(work)).json() == {"profile_id": work, "held": False}
    assert (await desk.erase("ana"))[0] == 202


async def test_lifting_makes_the_sweep_due_at_once(desk: Desk) -> None:
    ana = await desk.say("ana")
    await desk.hold(ana)
    await desk.age()
    due = "SELECT kind FROM work WHERE space_id = $1 AND kind = 'expire' AND state = 'ready' AND run_at <= now()"
    assert await desk.execute(due, desk.key.space) == []
    await desk.lift(ana)
    assert len(await desk.execute(due, desk.key.space)) == 1


async def test_no_hold_comes_while_a_conversation_is_being_erased(desk: Desk) -> None:
    ana = await desk.say("ana")
    bo = await desk.say("bo")
    await desk.link("ana", "ana.work")
    work = await desk.profile("canonical_user", "ana.work")
    status, erasure = await desk.erase("ana", "c1")
    assert status == 202
    for profile in (ana, work):
        late = await desk.hold(profile)
        assert (late.status_code, late.json()["code"]) == (409, "erasure_in_progress")
    assert (await desk.hold(bo)).status_code == 200
    await desk.execute(
        "UPDATE erasures SET state = 'completed', certificate = '{}' WHERE space_id = $1 AND id = $2",
        *(desk.key.space, UUID(erasure)),
    )
    assert (await desk.hold(ana)).status_code == 200


@pytest.mark.parametrize("held", ["firm", "eve"])
async def test_what_two_people_share_stays_while_one_of_them_is_held(desk: Desk, held: str) -> None:
    firm = await desk.say("firm", **{"X-End-User": "eve"})
    eve = await desk.profile("end_user", "eve")
    await desk.hold(firm if held == "firm" else eve)
    await desk.age()
    assert await desk.sweep() == 0
    await desk.execute("DELETE FROM turns WHERE space_id = $1", desk.key.space)
    assert (await desk.rows(firm))[0] == 1
    assert await desk.erase("firm") == (409, "legal_hold")
    assert await desk.erase("eve", kind="end_user") == (409, "legal_hold")
    assert await desk.erase("eve", "c1", kind="end_user") == (409, "legal_hold")


@pytest.mark.parametrize("table", ["turns", "observations", "logs, conversations, generations", "subjects"])
async def test_no_table_is_emptied_while_anybody_is_held(desk: Desk, resources: "Resources", table: str) -> None:
    ana = await desk.say("ana")
    await desk.hold(ana)
    async with resources.database.pool.acquire() as connection:
        with pytest.raises(asyncpg.PostgresError) as refused:
            await connection.execute(f"TRUNCATE {table} CASCADE")
    assert refused.value.sqlstate == "23001"
    assert await desk.rows(ana) == [1, 1, 1]


async def test_a_link_and_a_hold_at_the_same_moment_leave_nobody_uncovered(desk: Desk, resources: "Resources") -> None:
    space = desk.key.space
    for number in range(8):
        people = [await desk.say(f"{name}-{number}") for name in "abc"]
        one, two, three = [UUID(profile.removeprefix("sub_")) for profile in people]

        async def link(first: UUID, other: UUID) -> None:
            async with resources.database.begin(space) as tx:
                await links.link(await driver(tx), space, first, other, confirmed=True)

        async def place(subject: UUID) -> None:
            async with resources.database.begin(space) as tx:
                await holds.place(await driver(tx), space, subject, "key_test")

        await asyncio.gather(link(one, two), place(one), link(two, three))
        async with resources.database.begin(space) as tx:
            connection = await driver(tx)
            assert [await holds.held(connection, space, [subject]) for subject in (one, two, three)] == [True] * 3


async def test_of_a_hold_and_an_erasure_at_the_same_moment_one_is_refused(desk: Desk, resources: "Resources") -> None:
    outcomes = set()
    for number in range(8):
        ana = await desk.say(f"ana-{number}")
        wish = Wish(desk.key.space, "other", "key_test", subject=UUID(ana.removeprefix("sub_")))
        placed, erased = await asyncio.gather(desk.hold(ana), erasing.accept(resources, wish), return_exceptions=True)
        assert not isinstance(placed, BaseException)
        assert (placed.status_code == 200) == isinstance(erased, Held)
        assert placed.status_code in (200, 409)
        outcomes.add(placed.status_code)
    assert outcomes


async def test_every_table_of_people_s_rows_has_a_policy_for_the_held(resources: "Resources") -> None:
    async with resources.database.pool.acquire() as connection:
        rows = await connection.fetch("""
            SELECT c.table_name, EXISTS (
                SELECT FROM pg_policies p WHERE p.tablename = c.table_name AND p.policyname = 'unheld' AND p.cmd = 'DELETE'
                    AND p.permissive = 'RESTRICTIVE') AS held
            FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.column_name = 'subject_id'
        """)
    assert {row["table_name"] for row in rows if not row["held"]} == {
        "holds",  # lifting is how a hold ends
        "model_answers",  # a worker's own copy, thrown away as soon as its work is done
    }
