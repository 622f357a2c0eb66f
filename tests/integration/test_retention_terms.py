"""Each data set that the retention document names has a term that works: counted, never served, swept, told of."""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from jobs import expire as job
from jobs.letters import expire_letter
from models import announcement, backlog, retention, work
from models import claim as claims
from models.announcement import Event
from models.claim import Rung
from models.claim import Terms as Claiming
from models.database import driver
from models.dataset import see_expired
from models.kept import KEPT

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Remember

    from jobs.resources import Resources

_OLD = "now() - interval '400 days'"


class Old(NamedTuple):
    """How a row past any term comes about (each statement takes space and owner), and by what names its going is told."""

    make: tuple[str, ...]
    told: Mapping[str, int]


_SEALED = "decode('0102', 'hex')"
_LOG = "(SELECT id FROM logs WHERE space_id = $1)"
_EMPTIES_THE_LINES = "DELETE FROM observations WHERE space_id = $1 AND subject_id = $2"
_LINE = f"""
INSERT INTO observations (space_id, log_id, subject_id, generation, sealed, digest, kind, priority, tokens, observed_at,
    observed_offset, evidence, sources, born_at)
SELECT $1, {_LOG}, $2, 1, {_SEALED}, decode('07', 'hex'), 'event', 'low', 5, now(), 0, '{{1}}', '{{}}',
"""
_NOTE = f"""
WITH note AS (
    INSERT INTO notes (id, space_id, agent, digest, version) SELECT gen_random_uuid(), $1, 'support', {_SEALED}, 2
    WHERE $2::uuid IS NOT NULL RETURNING id
)
INSERT INTO note_versions (space_id, note_id, version, kind, title, body, tags, visibility, search, tokens, actor,
    retired_at)
SELECT $1, id, 1, 'procedure', 't', 'b', '{{}}', 'source', '', 1, 'key', {_OLD} FROM note
"""  # noqa: S608 - of this test
OLD: Mapping[str, Old] = {
    "turns": Old(
        (
            f"""
            INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                state, reason, created_at)
            SELECT $1, {_LOG}, 99, 1, $2, 'user', {_SEALED}, 5, now(), 0, 'skipped', 'role', {_OLD}
            """,
        ),
        {"turns": 1},
    ),
    "observations": Old((_EMPTIES_THE_LINES, f"{_LINE} {_OLD}"), {"observations": 1}),
    "generations": Old(
        (
            _EMPTIES_THE_LINES,
            f"{_LINE} now()",
            f"UPDATE generations SET created_at = {_OLD} WHERE space_id = $1 AND $2::uuid IS NOT NULL",  # noqa: S608 - of this test
            f"INSERT INTO generations (log_id, number, space_id, made_by) SELECT {_LOG}, 2, $1, 'reflect' WHERE $2::uuid IS NOT NULL",
            "UPDATE logs SET generation = 2 WHERE space_id = $1 AND subject_id = $2",
        ),
        {"observations": 1, "generations": 1},
    ),
    "notes": Old((_NOTE,), {"note_versions": 1}),
    "packages": Old(
        (
            f"""
            INSERT INTO exports (id, space_id, subject_id, actor, state, counts, finished_at, expires_at)
            SELECT gen_random_uuid(), $1, $2, 'key', 'ready', '{{}}', {_OLD}, now() + interval '1 day'
            """,
        ),
        {},
    ),
    "job_records": Old(
        (
            f"""
            INSERT INTO work (kind, queue_class, space_id, scope, dedup, state, payload, finished_at)
            SELECT 'seal', 'memory', $1, 'old', 'old', s, '{{}}', {_OLD} FROM unnest(ARRAY['done', 'dead']) AS s
            WHERE $2::uuid IS NOT NULL
            """,  # noqa: S608 - of this test
        ),
        {"work": 1},
    ),
    "model_usage": Old(
        (
            f"""
            INSERT INTO model_usage (space_id, work_id, job, model, outcome, input_tokens, cached_tokens, output_tokens,
                latency_ms, created_at)
            SELECT $1, 0, 'observe', 'm', 'ok', 1, 0, 1, 1, {_OLD} WHERE $2::uuid IS NOT NULL
            """,
        ),
        {"model_usage": 1},
    ),
    "receipts": Old(
        (
            f"""
            INSERT INTO seals (space_id, number, previous, hash, size, total, leaves, document, signature, at)
            SELECT $1, 1, {_SEALED}, {_SEALED}, 1, 1, {_SEALED}, '{{}}', '{{}}', {_OLD} WHERE $2::uuid IS NOT NULL
            """,
            f"""
            INSERT INTO receipts (id, space_id, at, actor, action, ids, counts, seal, place)
            SELECT gen_random_uuid(), $1, {_OLD} - interval '1 second', 'key', 'test.done', '{{}}', '{{}}', 1, 0
            WHERE $2::uuid IS NOT NULL
            """,
        ),
        {"receipts": 1},
    ),
}
_SERVED_BY_STATE = {
    "packages",
    "job_records",
}  # no policy leaves them out: the first say `expired`, the second no route reads
_SERVED = {name: kept.table for name, kept in KEPT.items() if name not in _SERVED_BY_STATE}


@pytest.fixture
async def key(mint: "Mint", remember: "Remember") -> "Minted":
    key = await mint(scopes=("operator", "receipts:read", "memory:read"))
    await remember(key, "likes heliotrope")
    return key


async def make(resources: "Resources", key: "Minted", data_set: str) -> None:
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        for statement in OLD[data_set].make:
            await connection.execute(statement, key.space, key.owner)


async def standing(resources: "Resources", key: "Minted", data_set: str, *, dead: bool) -> int:
    """Rows of the data set's table that a reader sees, or, `dead`, that there are."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        if dead:
            await see_expired(connection)
        query = f"SELECT count(*) FROM {KEPT[data_set].table} WHERE space_id = $1"  # noqa: S608 - of this test
        return int(await connection.fetchval(query, key.space))


async def past(resources: "Resources", key: "Minted", data_set: str) -> int:
    """Rows past their term that are there still."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await see_expired(connection)
        query = f"SELECT count(*) FROM {KEPT[data_set].table} t WHERE space_id = $1 AND ({KEPT[data_set].past})"  # noqa: S608 - of this test
        return int(await connection.fetchval(query, key.space))


async def sweep(resources: "Resources", key: "Minted") -> None:
    """The job, claimed and run."""
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await work.add(connection, expire_letter(key.space))
        query = "SELECT id, epoch FROM work WHERE space_id = $1 AND kind = 'expire' AND state = 'ready'"
        due = await connection.fetchrow(query, key.space)
    terms = Claiming("sweeper", "housekeeping", ("expire",), timedelta(minutes=1), 1_000)
    async with resources.database.pool.acquire() as connection:
        (claim,) = await claims.rung(connection, terms, [Rung(due["id"], due["epoch"])], 1)
    await job.expire(claim, resources)  # type: ignore[arg-type]  # it needs the stores alone


async def receipts_of(resources: "Resources", key: "Minted", action: str) -> list[Any]:
    async with resources.database.begin(key.space) as tx:
        query = "SELECT counts FROM receipts WHERE space_id = $1 AND action = $2 ORDER BY at"
        return [row["counts"] for row in await (await driver(tx)).fetch(query, key.space, action)]


def test_every_data_set_of_the_document_is_tried_here() -> None:
    assert set(OLD) == set(KEPT)


@pytest.mark.parametrize("data_set", KEPT)
async def test_a_term_counts_hides_sweeps_and_tells(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", data_set: str
) -> None:
    await make(resources, key, data_set)
    document = {data_set: "365d"}
    before = await standing(resources, key, data_set, dead=True)
    preview = (await client.post("/v1/policies/retention/preview", json=document, headers=key.headers)).json()["rows"]
    assert preview[data_set] == 1
    assert await standing(resources, key, data_set, dead=False) == before
    said = (await client.put("/v1/policies/retention", json=document, headers=key.headers)).json()
    assert (said[data_set], said["version"]) == ("365d", 1)
    if data_set in _SERVED:
        written = data_set == "receipts"  # that the terms changed
        assert await standing(resources, key, data_set, dead=False) == before - 1 + written
    again = (await client.post("/v1/policies/retention/preview", json=document, headers=key.headers)).json()["rows"]
    assert set(again.values()) == {0}
    longer = (await client.put("/v1/policies/retention", json={data_set: "forever"}, headers=key.headers)).json()
    assert longer[data_set] == "forever"
    assert await past(resources, key, data_set) == 1
    await sweep(resources, key)
    swept = await receipts_of(resources, key, "retention.swept")
    assert [{name: rows for name, rows in one.items() if name in OLD[data_set].told} for one in swept] == [
        dict(OLD[data_set].told)
    ][: len(OLD[data_set].told)]
    assert await past(resources, key, data_set) == (0 if OLD[data_set].told else 1)


async def test_a_shorter_term_takes_a_package_at_once_and_a_longer_one_gives_none_back(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await make(resources, key, "packages")
    async with resources.database.begin(key.space) as tx:
        export: UUID = await (await driver(tx)).fetchval("SELECT id FROM exports WHERE space_id = $1", key.space)
    path = f"/v1/exports/exp_{export.hex}"
    assert (await client.get(path, headers=key.headers)).json()["state"] == "ready"
    for term in ("30d", "forever"):
        await client.put("/v1/policies/retention", json={"packages": term}, headers=key.headers)
        assert (await client.get(path, headers=key.headers)).json()["state"] == "expired"


async def test_without_a_document_the_defaults_are_told_and_nothing_is_walked(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    said = (await client.get("/v1/policies/retention", headers=key.headers)).json()
    assert {name: term for name, term in said.items() if term != "forever"} == {
        "version": 0,
        "on_source_loss": "keep",
        "packages": "7d",
        "job_records": "30d",
    }
    async with resources.database.begin_everywhere() as tx:
        assert key.space not in await retention.with_terms(await driver(tx))


async def test_a_sweep_is_due_within_a_minute_only_where_an_index_tells(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    idle = await mint(scopes=("operator",))
    for one in (key, idle):
        await client.put("/v1/policies/retention", json={"turns": "365d"}, headers=one.headers)
    await make(resources, key, "turns")
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        overdue, walked = await retention.overdue(connection), await retention.with_terms(connection)
    assert (key.space in overdue, idle.space in overdue) == (True, False)
    assert {key.space, idle.space} <= set(walked)


async def test_a_sweep_walks_on_past_what_it_has_deleted_and_what_is_held(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_BATCH", 3)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        held = uuid4()
        await connection.execute("INSERT INTO subjects (id, space_id) VALUES ($1, $2)", held, key.space)
        await connection.execute(
            f"""
            INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                state, reason, created_at)
            SELECT $1, {_LOG}, n, 1, CASE WHEN n % 2 = 0 THEN $2::uuid ELSE $3 END, 'user', {_SEALED}, 5, now(), 0, 'skipped',
                'role', {_OLD} + n / 4 * interval '1 minute'
            FROM generate_series(1, 40) AS n
            """,  # noqa: S608 - of this test
            *(key.space, held, key.owner),
        )
    assert (await client.put(f"/v1/holds/sub_{held.hex}", headers=key.headers)).status_code == 200
    await client.put("/v1/policies/retention", json={"turns": "365d"}, headers=key.headers)
    await sweep(resources, key)
    assert await standing(resources, key, "turns", dead=True) == 20
    await client.delete(f"/v1/holds/sub_{held.hex}", headers=key.headers)
    await sweep(resources, key)
    assert await standing(resources, key, "turns", dead=True) == 0
    assert await receipts_of(resources, key, "retention.swept") == [{"turns": 20}, {"turns": 20}]


async def test_finished_work_goes_by_the_space_s_own_term_where_it_has_one(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    other = await mint(scopes=("operator",))
    await client.put("/v1/policies/retention", json={"job_records": "forever"}, headers=key.headers)
    for one in (key, other):
        await make(resources, SimpleNamespace(space=one.space, owner=one.owner), "job_records")  # type: ignore[arg-type]
    await backlog.prune(resources.database.pool, timedelta(days=30), 100_000)
    left = [await standing(resources, one, "job_records", dead=True) for one in (key, other)]
    assert left == [2, 1]  # what died waits for somebody who looks


async def test_what_was_announced_long_ago_goes_unless_somebody_is_still_to_hear_it(
    resources: "Resources", key: "Minted"
) -> None:
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        hook = uuid4()
        await connection.execute(
            "INSERT INTO webhooks (id, space_id, name, url, secrets, events) VALUES ($1, $2, 'w', $3, $3, ARRAY['export.ready'])",
            *(hook, key.space, b"x"),
        )
        waits = await announcement.announce(connection, key.space, Event.EXPORT_READY, {})
        for _ in range(2):
            await announcement.announce(connection, key.space, Event.ERASURE_COMPLETED, {})
        parked = await announcement.announce(connection, key.space, Event.EXPORT_READY, {})
        await connection.execute("UPDATE deliveries SET state = 'parked' WHERE announcement_id = $1", parked)
        await connection.execute(f"UPDATE announcements SET created_at = {_OLD} WHERE space_id = $1", key.space)  # noqa: S608 - of this test
        new = await announcement.announce(connection, key.space, Event.EXPORT_READY, {})
    async with resources.database.begin_everywhere() as tx:
        assert await retention.forget_announced(await driver(tx), timedelta(days=30)) >= 3
    async with resources.database.begin(key.space) as tx:
        left = await (await driver(tx)).fetch("SELECT id FROM announcements WHERE space_id = $1", key.space)
    assert {row["id"] for row in left} == {waits, new}
