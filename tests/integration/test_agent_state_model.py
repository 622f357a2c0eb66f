"""Whatever is written, removed, expired and erased in whatever order: a state reads as a small model of it says."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from intake import erasure as erasing
from intake.erasure import Wish
from models.database import driver
from models.dataset import see_expired

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources

FIELDS = ("f0", "f1", "f2")
TYPE = {
    "type": "counter",
    "ownership": "agent",
    "fields": {name: {"type": "number"} for name in FIELDS},
    "agent_state": {"scope": "task"},
    "retention": {"f0": "1d", "f1": "2d", "f2": "3d"},
}
GONE = {"$delete": True}
ANA = {"handle_kind": "email", "handle": "ana@example.org"}

_names = st.sampled_from(FIELDS)
_merge = st.dictionaries(_names, st.integers(0, 9) | st.just(GONE), max_size=3)
STEPS = st.lists(
    st.tuples(st.just("merge"), _merge)
    | st.tuples(st.just("swap"), st.dictionaries(_names, st.integers(0, 9)))
    | st.tuples(st.sampled_from(["stale", "former", "queued", "expire", "erase"]), st.just({}))
    | st.tuples(st.just("expire field"), _names),
    min_size=1,
    max_size=14,
)


@dataclass(slots=True)
class Model:
    """What a state is, and which lives it had."""

    body: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    generation: str | None = None
    former: list[str] = field(default_factory=list)
    erased_after: str | None = None

    def end(self) -> None:
        self.former += [self.generation] if self.generation else []
        self.body, self.version, self.generation = {}, 0, None


@dataclass(slots=True)
class Life:
    """One state and its model, step by step."""

    client: "httpx.AsyncClient"
    resources: "Resources"
    key: "Minted"
    model: Model = field(default_factory=Model)
    scope: dict[str, str] = field(default_factory=lambda: {"kind": "task", "id": uuid4().hex})

    async def put(self, body: dict[str, Any], **besides: Any) -> "httpx.Response":
        asked = {"scope": self.scope, "agent": "counter", "body": body, "subject": ANA} | besides
        return await self.client.put("/v1/agent-state", json=asked, headers=self.key.headers)

    async def execute(self, query: str, *values: Any) -> None:
        async with self.resources.database.begin(self.key.space) as tx:
            connection = await driver(tx)
            await see_expired(connection)
            await connection.execute(query, self.key.space, *values)

    async def step(self, what: str, with_: Any) -> None:
        model = self.model
        match what:
            case "merge":
                await self._stored(await self.put(with_))
                model.body = {name: value for name, value in (model.body | with_).items() if value != GONE}
            case "swap":
                await self._stored(await self.put(with_, mode="cas", if_version=model.version))
                model.body = with_
            case "stale":
                assert (await self.put({"f0": 1}, mode="cas", if_version=model.version + 1)).status_code == 412
            case "former" if model.former:
                assert (await self.put({"f0": 1}, if_generation=model.former[-1])).status_code == 412
            case "queued" if model.erased_after:
                assert (await self.put({"f0": 1}, written_at=model.erased_after)).status_code == 409
            case "expire":
                await self.execute("UPDATE states SET expires_at = now() WHERE space_id = $1")
                model.end()
            case "expire field":
                await self.execute(
                    "UPDATE state_fields SET expires_at = now() WHERE space_id = $1 AND field = $2", with_
                )
                model.body.pop(with_, None)
            case "erase" if model.version:
                await self._erase()

    async def _stored(self, answer: "httpx.Response") -> None:
        told = answer.json()
        assert (answer.status_code, told["stored"], told["version"]) == (200, True, self.model.version + 1)
        assert told["generation"] not in self.model.former
        assert self.model.generation in (None, told["generation"])
        self.model.version, self.model.generation = told["version"], told["generation"]

    async def _erase(self) -> None:
        self.model.erased_after = datetime.now(UTC).isoformat()
        found = await self.client.post("/v1/profiles/lookup", json=ANA, headers=self.key.headers)
        whom = UUID(found.json()["profile_id"].removeprefix("sub_"))
        await erasing.accept(self.resources, Wish(self.key.space, "other", "test", subject=whom))
        self.model.end()

    async def reads_as_its_model(self) -> None:
        asked = {"scope": self.scope, "agent": "counter"}
        read = (await self.client.post("/v1/agent-state/read", json=asked, headers=self.key.headers)).json()
        model = self.model
        assert (read["body"], read["version"], read["generation"]) == (model.body, model.version, model.generation)
        assert set(read["expires_at"]) == set(model.body)


@settings(max_examples=12)
@given(steps=STEPS)
async def test_a_state_is_what_its_model_says(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint", steps: list[tuple[str, Any]]
) -> None:
    key = await mint(scopes=("agent_state", "security", "profiles:read"))
    await client.put("/v1/features", json={"agent_state": True}, headers=key.headers)
    assert (await client.put("/v1/object-types", json={"types": [TYPE]}, headers=key.headers)).status_code == 200
    life = Life(client, resources, key)
    for what, with_ in steps:
        await life.step(what, with_)
        await life.reads_as_its_model()


async def test_writers_at_work_while_their_customer_is_erased_leave_nothing_of_that_life(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint"
) -> None:
    key = await mint(scopes=("agent_state", "security", "profiles:read"))
    await client.put("/v1/features", json={"agent_state": True}, headers=key.headers)
    await client.put("/v1/object-types", json={"types": [TYPE]}, headers=key.headers)
    lives = [Life(client, resources, key) for _ in range(6)]
    assert (await lives[0].put({"f0": 0})).status_code == 200
    found = await client.post("/v1/profiles/lookup", json=ANA, headers=key.headers)
    whom = UUID(found.json()["profile_id"].removeprefix("sub_"))
    erasure = asyncio.create_task(erasing.accept(resources, Wish(key.space, "other", "test", subject=whom)))
    answers = await asyncio.gather(*(life.put({"f1": n}) for n in range(5) for life in lives))
    await erasure
    assert {one.status_code for one in answers} <= {200, 409}
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        left = "SELECT count(*) FROM states WHERE space_id = $1 AND ($2 = ANY (subjects) OR key_id = $2)"
        assert await connection.fetchval(left, key.space, whom) == 0
