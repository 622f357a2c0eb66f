"""Last night's backup brings nobody back: a real dump, an erasure, the dump restored under a running API."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest

from api.app import create_app
from cli import checks
from cli import keys as minting
from cli.reach import with_stores
from config.settings import Settings, load
from gateways import embedded_postgres
from gateways.key_store import KeyGone
from intake import erasure
from jobs.resources import Resources, furnished, opened
from jobs.start import LedgerAhead, check_ledger
from jobs.watch import Watch
from migrations.run import migrate
from models.database import driver
from tests.integration import erasing
from tests.integration.dumping import postgres_tool

if TYPE_CHECKING:
    import httpx
    from conftest import Servers, Serving

    from gateways.embedded_postgres import Postgres

CANARY = "heliotrope-9931"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple["Postgres", "Postgres"]]:
    """Of these tests alone: one of them is overwritten."""
    folder = tmp_path_factory.mktemp("drill")
    data = embedded_postgres.start(folder / "data")
    keys = embedded_postgres.start(folder / "keys", database="keys", role="keys")
    yield data, keys
    keys.stop()
    data.stop()


@pytest.fixture
def stores(clusters: tuple["Postgres", "Postgres"], servers: "Servers") -> tuple["Postgres", Settings]:
    """A deployment on which nothing has happened yet, with a master key of its own. Valkey is the session's."""
    data, keys = clusters
    for cluster in clusters:
        postgres_tool(cluster.url, "psql", "-q", "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    asyncio.run(migrate(data.url, keys.url))
    master = base64.b64encode(os.urandom(32)).decode()
    return data, load(database_url=data.url, keys_url=keys.url, redis_url=servers.valkey.url, master_key=master)


def restore(data: "Postgres", dump: Path) -> None:
    postgres_tool(data.url, "psql", "-q", "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    postgres_tool(data.url, "pg_restore", "--no-owner", "-d", urlsplit(data.url).path.strip("/"), str(dump))


async def count(resources: Resources, table: str) -> int:
    async with resources.database.begin_everywhere() as tx:
        return int(await (await driver(tx)).fetchval(f"SELECT count(*) FROM {table}"))  # noqa: S608 - names of this test


@asynccontextmanager
async def everything(
    settings: Settings, serving: "Serving"
) -> AsyncIterator[tuple[Resources, "httpx.AsyncClient", Any]]:
    async with opened(settings) as resources, serving(create_app(settings)) as client:
        wanted = minting.Wanted(
            "default", "chat", "turns:write,memory:read,operator", admin=True, allow_impersonation=True
        )
        secret = (await minting.mint(resources, wanted)).secret

        async def call(path: str, person: str, **body: Any) -> "httpx.Response":
            headers = {"Authorization": f"Bearer {secret}", "X-Canonical-User": person}
            return await client.post(path, json={"agent": "support"} | body, headers=headers)

        yield resources, client, call


async def until(status: int, call: Any) -> "httpx.Response":
    """Asks until the answer is of that status: the API looks at the ledger once a second."""
    async with asyncio.timeout(20):
        while (answer := await call("/v1/observations/read", "bo")).status_code != status:  # noqa: ASYNC110 - of a second's own pace
            await asyncio.sleep(0.05)
    return cast("httpx.Response", answer)


async def test_a_restored_backup_is_not_served_until_its_erasures_are_replayed(
    stores: tuple["Postgres", Settings], serving: "Serving", tmp_path: Path
) -> None:
    data, settings = stores
    async with everything(settings, serving) as (resources, client, call):
        for person in ("ana", "bo"):
            turn = {"role": "user", "content": f"{person} likes {CANARY}"}
            assert (
                await call("/v1/turns", person, conversation_id=f"talk of {CANARY}", turns=[turn])
            ).status_code == 202
        dump = tmp_path / "dump"
        await asyncio.to_thread(postgres_tool, data.url, "pg_dump", "-Fc", "--enable-row-security", "-f", str(dump))
        plain = await asyncio.to_thread(postgres_tool, data.url, "pg_dump", "--enable-row-security", "--inserts")
        assert plain.count(b"INSERT INTO public.turns") == 2
        assert not any(form in plain for form in (CANARY.encode(), CANARY.encode().hex().encode(), b"likes"))

        async with resources.database.begin_everywhere() as tx:
            ana = await (await driver(tx)).fetchval("SELECT subject_id FROM logs ORDER BY id LIMIT 1")
        named = {"handle_kind": "canonical_user", "handle": "ana"}
        headers = {"Authorization": (await client_headers(call))}
        accepted = await client.post(
            "/v1/erasures", json={"subject": named, "reason_code": "subject_request"}, headers=headers
        )
        assert accepted.status_code == 202

        await asyncio.to_thread(restore, data, dump)
        assert await count(resources, "turns") == 2  # the backup has brought the rows back
        await assert_nothing_is_served(resources, client, call)

        assert await erasure.replay(resources) == 1
        assert await erasure.replay(resources) == 0
        await until(200, call)
        await check_ledger(resources.keys, data.url)
        with pytest.raises(KeyGone):
            await resources.keys.keys([ana])
        async with resources.database.begin_everywhere() as tx:
            connection = await driver(tx)
            space = await connection.fetchval("SELECT id FROM spaces")
            assert await connection.fetchval("SELECT count(*) FROM subjects WHERE id = $1", ana) == 0
        await erasing.finish(resources, space)
        assert await count(resources, "turns") == 1  # bo's


async def assert_nothing_is_served(resources: Resources, client: "httpx.AsyncClient", call: Any) -> None:
    """Neither a request nor a start, a command or a worker goes by these data, and each way to look says what to do."""
    settings = resources.settings
    refused = await until(503, call)
    assert refused.json()["code"] == "erasures_to_replay"
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["erasures"]) == (503, "down")
    found = await checks.guarded("erasures", checks.CHECKS["erasures"], settings)
    assert (found.state, found.do) == (checks.State.WRONG, "`afterturn migrate --replay-erasures`")
    with pytest.raises(LedgerAhead, match="--replay-erasures"):
        await check_ledger(resources.keys, settings.stores.database_url.get_secret_value())
    with pytest.raises(LedgerAhead), environment_of(settings):
        await asyncio.to_thread(with_stores, None, spaces_of)
    watch = Watch(resources.database, resources.keys, resources.keys.forget_all)
    assert not await watch.trusts()  # a worker begins nothing


async def client_headers(call: Any) -> str:
    """The bearer that `call` sends."""
    return str((await call("/v1/observations/read", "bo")).request.headers["authorization"])


async def test_the_keys_that_remain_open_nothing_of_the_erased_in_an_old_dump(
    stores: tuple["Postgres", Settings], serving: "Serving"
) -> None:
    _, settings = stores
    async with everything(settings, serving) as (resources, client, call):
        turn = {"role": "user", "content": f"ana likes {CANARY}"}
        await call("/v1/turns", "ana", conversation_id="c", turns=[turn])
        async with resources.database.begin_everywhere() as tx:
            sealed = await (await driver(tx)).fetch("SELECT sealed FROM turns UNION ALL SELECT sealed FROM handles")
        named = {"handle_kind": "canonical_user", "handle": "ana"}
        headers = {"Authorization": (await client_headers(call))}
        await client.post("/v1/erasures", json={"subject": named, "reason_code": "other"}, headers=headers)
        remaining = await asyncpg.connect(settings.stores.keys_url.get_secret_value())
        ids = [row["id"] for row in await remaining.fetch("SELECT id FROM wrapped_keys WHERE purpose <> 'suppression'")]
        await remaining.close()
        opened_texts = []
        for key in (await resources.keys.keys(ids)).values():
            for row in sealed:
                for purpose in ("turn", "handle"):
                    try:
                        opened_texts.append(key.open(row["sealed"], purpose))
                    except Exception:  # noqa: BLE001, S112 - whatever it says, it is not opened
                        continue
        assert not any(CANARY in text or text == "ana" for text in opened_texts)


@contextmanager
def environment_of(settings: Settings) -> Iterator[None]:
    """What a command finds, had it been typed on that deployment."""
    stores = settings.stores
    said = {
        "AFTERTURN_DATABASE_URL": stores.database_url.get_secret_value(),
        "AFTERTURN_KEYS_URL": stores.keys_url.get_secret_value(),
        "AFTERTURN_REDIS_URL": stores.redis_url.get_secret_value(),
        "AFTERTURN_MASTER_KEY": stores.master_key.get_secret_value() if stores.master_key else "",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in said.items():
            patch.setenv(name, value)
        yield


async def spaces_of(resources: Resources) -> int:
    return await count(resources, "spaces")


async def test_a_hold_that_the_backup_brought_back_does_not_keep_the_erased(
    stores: tuple["Postgres", Settings], serving: "Serving", tmp_path: Path
) -> None:
    data, settings = stores
    async with everything(settings, serving) as (resources, client, call):
        turn = {"role": "user", "content": f"ana likes {CANARY}"}
        await call("/v1/turns", "ana", conversation_id="one", turns=[turn])
        await call("/v1/turns", "bo", conversation_id="one", turns=[turn])
        await call("/v1/turns", "bo", conversation_id="two", turns=[turn])
        headers = {"Authorization": (await client_headers(call))}
        people = await held_people(resources)
        for person in people:
            assert (await client.put(f"/v1/holds/sub_{person.hex}", headers=headers)).status_code < 300
        dump = tmp_path / "dump"
        await asyncio.to_thread(postgres_tool, data.url, "pg_dump", "-Fc", "--enable-row-security", "-f", str(dump))
        for person in people:
            assert (await client.delete(f"/v1/holds/sub_{person.hex}", headers=headers)).status_code < 300
        bo = {"handle_kind": "canonical_user", "handle": "bo"}
        for what in (
            {"subject": bo | {"handle": "ana"}},
            {"conversation": {"subject": bo, "conversation_id": "one"}},
        ):
            asked = await client.post("/v1/erasures", json=what | {"reason_code": "error"}, headers=headers)
            assert asked.status_code == 202
        await asyncio.to_thread(restore, data, dump)
        assert await count(resources, "holds") == 2
        assert await erasure.replay(resources) == 2
        assert await count(resources, "holds") == 0
        await erase_all(resources)
        assert await count(resources, "turns") == 1  # bo's second


async def test_a_number_that_the_backup_gives_out_again_is_not_erased_with_its_first_owner(
    stores: tuple["Postgres", Settings], serving: "Serving", tmp_path: Path
) -> None:
    data, settings = stores
    async with everything(settings, serving) as (resources, client, call):
        turn = {"role": "user", "content": f"bo likes {CANARY}"}
        await call("/v1/turns", "bo", conversation_id="one", turns=[turn])
        dump = tmp_path / "dump"
        await asyncio.to_thread(postgres_tool, data.url, "pg_dump", "-Fc", "--enable-row-security", "-f", str(dump))
        await call("/v1/turns", "bo", conversation_id="two", turns=[turn])
        bo = {"handle_kind": "canonical_user", "handle": "bo"}
        what = {"conversation": {"subject": bo, "conversation_id": "two"}, "reason_code": "error"}
        headers = {"Authorization": (await client_headers(call))}
        assert (await client.post("/v1/erasures", json=what, headers=headers)).status_code == 202
        erased = await resources.keys.pool.fetchval("SELECT target->'conversations' FROM ledger")
        await asyncio.to_thread(restore, data, dump)
        assert await erasure.replay(resources) == 1
        await until(200, call)
        carol = await call("/v1/turns", "carol", conversation_id="new", turns=[turn])
        assert carol.status_code == 202
        async with resources.database.begin_everywhere() as tx:
            newest = await (await driver(tx)).fetchval("SELECT max(id) FROM conversations")
        assert [newest] == json.loads(erased)
        await erase_all(resources)
        assert await count(resources, "turns") == 2


async def held_people(resources: Resources) -> list[UUID]:
    async with resources.database.begin_everywhere() as tx:
        rows = await (await driver(tx)).fetch("SELECT DISTINCT subject_id FROM logs")
    return [row["subject_id"] for row in rows]


async def erase_all(resources: Resources) -> None:
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        space = await connection.fetchval("SELECT id FROM spaces")
        waiting = await connection.fetchval(
            "SELECT count(*) FROM work WHERE kind = 'erase_subject' AND state = 'ready'"
        )
    async with furnished(resources) as workshop:
        for _ in range(waiting):
            await erasing.finish(workshop, space)
