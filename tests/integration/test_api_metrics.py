from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import delete
from sqlmodel import col

from api.meters import Meters, Reader
from models.columns import utc_now
from models.model_usage import ModelUsage

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Servers

    from jobs.resources import Resources


def value(written: bytes, name: str, **labels: str) -> float:
    wanted = {f'{label}="{of}"' for label, of in labels.items()}
    for line in written.decode().splitlines():
        series, _, number = line.rpartition(" ")
        found = series.partition("{")
        if found[0] == name and set(found[2].removesuffix("}").split(",")) - {""} == wanted:
            return float(number)
    raise AssertionError(f"{name} {labels} is not there")


async def read_anew(reader: Reader) -> bytes:
    reader._fresh_until = 0.0
    await reader.read()
    return reader.meters.written()


async def use(resources: "Resources", space: int, job: str, outcome: str, *, age: int = 10) -> None:
    row = ModelUsage(
        space_id=space,
        work_id=1,
        job=job,
        model="some",
        outcome=outcome,
        input_tokens=100,
        cached_tokens=40,
        output_tokens=10,
        latency_ms=5,
        created_at=utc_now() - timedelta(seconds=age),
    )
    async with resources.database.begin(space) as tx:
        tx.add(row)


async def test_model_calls_are_counted_from_the_store_and_each_once(resources: "Resources", mint: "Mint") -> None:
    key, job = await mint(), f"job-{uuid4().hex}"
    reader = Reader(resources.database, Meters())
    await use(resources, key.space, job, "ok")
    assert value(await read_anew(reader), "afterturn_model_calls_total", job=job, outcome="ok") == 1
    for outcome in ("ok", "rate_limit"):
        await use(resources, key.space, job, outcome)
    await use(resources, key.space, job, "ok", age=0)  # neighbours of so young a row may still commit
    for _ in range(2):
        written = await read_anew(reader)
        assert value(written, "afterturn_model_calls_total", job=job, outcome="ok") == 2
        assert value(written, "afterturn_model_calls_total", job=job, outcome="rate_limit") == 1
        assert value(written, "afterturn_model_tokens_total", job=job, kind="input") == 300
        assert value(written, "afterturn_model_tokens_total", job=job, kind="cached") == 120


async def test_a_restart_loses_no_model_call_and_a_deletion_takes_none_back(
    resources: "Resources", mint: "Mint"
) -> None:
    key, job = await mint(), f"job-{uuid4().hex}"
    for _ in range(3):
        await use(resources, key.space, job, "ok")
    reader = Reader(resources.database, Meters())
    before = value(await read_anew(reader), "afterturn_model_calls_total", job=job, outcome="ok")
    restarted = await read_anew(Reader(resources.database, Meters()))
    assert value(restarted, "afterturn_model_calls_total", job=job, outcome="ok") == before == 3
    async with resources.database.begin(key.space) as tx:
        await tx.execute(delete(ModelUsage).where(col(ModelUsage.job) == job))
    assert value(await read_anew(reader), "afterturn_model_calls_total", job=job, outcome="ok") == 3


async def test_the_queue_is_measured_as_it_stands(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint"
) -> None:
    key = await mint()
    reader = Reader(resources.database, Meters())
    before = value(await read_anew(reader), "afterturn_logs_due")
    said = {"agent": "support", "conversation_id": "c", "turns": [{"role": "user", "content": "hello"}]}
    await client.post("/v1/turns", json=said, headers=key.headers)
    assert value(await read_anew(reader), "afterturn_logs_due") == before
    await client.post("/v1/observations/flush", json={"agent": "support"}, headers=key.headers)
    written = await read_anew(reader)
    assert value(written, "afterturn_logs_due") == before + 1
    assert value(written, "afterturn_queue_depth", queue_class="memory", state="ready") >= 1
    assert value(written, "afterturn_observation_lag_seconds") >= 0
    assert value(written, "afterturn_database_up") == 1


async def test_turns_are_counted_by_what_became_of_them(client: "httpx.AsyncClient", mint: "Mint") -> None:
    def counted(written: bytes) -> tuple[float, float]:
        return (
            value(written, "afterturn_turns_total", outcome="accepted"),
            value(written, "afterturn_turns_total", outcome="duplicate"),
        )

    key = await mint()
    said = {"agent": "support", "conversation_id": "c", "turns": [{"id": "1", "role": "user", "content": "hello"}]}
    before = counted((await client.get("/metrics")).content)
    for _ in range(3):
        await client.post("/v1/turns", json=said, headers=key.headers)
    after = counted((await client.get("/metrics")).content)
    assert (after[0] - before[0], after[1] - before[1]) == (1, 2)


async def test_without_postgresql_what_the_process_counts_is_told_all_the_same(
    client: "httpx.AsyncClient", servers: "Servers", resources: "Resources"
) -> None:
    reader = Reader(resources.database, Meters())
    servers.data.kill()
    try:
        written = await read_anew(reader)
    finally:
        servers.data.restart()
    assert value(written, "afterturn_database_up") == 0
    assert value(written, "afterturn_turns_total", outcome="accepted") == 0
    assert value(await read_anew(reader), "afterturn_database_up") == 1
