"""The residue scan finds what it has never heard of: ids in any column, array, document or text, in Redis, in the key store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from jobs import residue
from models.dataset import Target

if TYPE_CHECKING:
    from jobs.resources import Resources

SUBJECT, OTHER = UUID("5b1f6c2e-8a3d-4f0e-9c77-d2a4e1b09f36"), UUID("5b1f6c2e-8a3d-4f0e-9c77-d2a4e1b09f37")
LOG, CONVERSATION = 987_654_321_001, 987_654_321_002
TARGET = Target(1, subjects=(SUBJECT, uuid4()), logs=(LOG, 987_654_321_005), conversations=(CONVERSATION,))


@asynccontextmanager
async def diary(resources: "Resources", column: str, kind: str, *values: Any) -> AsyncIterator[str]:
    """A table that nobody registered, for as long as the block lasts."""
    pool, name = resources.database.pool, f"diary_{uuid4().hex[:12]}"
    await pool.execute(f'CREATE TABLE {name} (id bigint, "{column}" {kind})')
    try:
        for value in values:
            await pool.execute(f"INSERT INTO {name} VALUES (7, $1)", value)  # noqa: S608 - made above
        yield name
    finally:
        await pool.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("whose", "uuid", SUBJECT),
        ("readers", "uuid[]", [OTHER, SUBJECT]),
        ("log_id", "bigint", LOG),
        ("conversation_id", "bigint", CONVERSATION),
        ("note", "text", f"about {SUBJECT} again"),
        ("note", "varchar(200)", f"/packages/{SUBJECT.hex}.zip"),
        ("tags", "text[]", ["a", f"sub_{SUBJECT.hex}"]),
        ("details", "jsonb", {"a": [{"whose": str(SUBJECT)}]}),
        ("details", "jsonb", {"whose": [[SUBJECT.hex]]}),
        ("details", "jsonb", {"a": [{"log_id": LOG}]}),
        ("details", "jsonb", {"b": {"conversation_id": str(CONVERSATION)}}),
        ("details", "json", f'{{"whose": "{SUBJECT}"}}'),
        ("raw", "bytea", SUBJECT.bytes),
        ("raw", "bytea", b"before" + SUBJECT.bytes + b"after"),
        ("scope", "text", f"log:{LOG}"),
    ],
)
async def test_an_id_is_found_wherever_it_stands(resources: "Resources", column: str, kind: str, value: Any) -> None:
    async with diary(resources, column, kind, value) as name:
        left = await residue.look(resources, TARGET)
    assert left.found == {f"{name}.{column}": 1}


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("whose", "uuid", OTHER),
        ("log_id", "bigint", LOG + 1),
        ("turns", "bigint", LOG),
        ("note", "text", f"about {OTHER} again"),
        ("details", "jsonb", {"log_id": LOG + 1, "turn": LOG}),
        ("details", "jsonb", [1, "two", None]),
        ("raw", "bytea", OTHER.bytes),
        ("raw", "bytea", b""),
        ("note", "text", None),
    ],
)
async def test_somebody_else_s_id_is_no_residue(resources: "Resources", column: str, kind: str, value: Any) -> None:
    async with diary(resources, column, kind, value, value):
        left = await residue.look(resources, TARGET)
    assert left.clean
    assert left.record()["looked_at"]["tables"] > 10


Plant = Callable[[Redis, str], Any]


@pytest.mark.parametrize(
    "plant",
    [
        lambda redis, key: redis.set(key, f"x {SUBJECT}"),
        lambda redis, key: redis.set(f"{key}:{SUBJECT.hex}", "1"),
        lambda redis, key: redis.hset(key, "whose", SUBJECT.hex),
        lambda redis, key: redis.rpush(key, "a", SUBJECT.bytes),
        lambda redis, key: redis.sadd(key, str(SUBJECT)),
        lambda redis, key: redis.zadd(key, {str(SUBJECT): 1.0}),
        lambda redis, key: redis.xadd(key, {"whose": str(SUBJECT)}),
    ],
    ids=["string", "name", "hash", "list", "set", "sorted set", "stream"],
)
async def test_redis_is_searched_whatever_the_kind(resources: "Resources", plant: Plant) -> None:
    url = resources.settings.stores.redis_url.get_secret_value()
    async with Redis.from_url(url) as redis:
        key = f"test-residue-{uuid4().hex}"
        await plant(redis, key)
        try:
            left = await residue.look(resources, TARGET)
        finally:
            await redis.delete(*[name async for name in redis.scan_iter(f"{key}*")])
    assert left.found == {"redis": 1}
    assert left.redis_keys >= 1
    assert (await residue.look(resources, TARGET)).clean


async def test_a_key_that_was_not_destroyed_is_residue(resources: "Resources") -> None:
    subject = uuid4()
    await resources.keys.make(subject, "subject")
    left = await residue.look(resources, Target(1, subjects=(subject,)))
    assert left.found == {"keys": 1}


async def test_a_store_that_does_not_answer_is_not_clean(resources: "Resources") -> None:
    from dataclasses import replace

    from pydantic import SecretStr
    from redis.exceptions import RedisError

    stores = resources.settings.stores.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:9/0")})
    deaf = replace(resources, settings=resources.settings.model_copy(update={"stores": stores}))
    with pytest.raises(RedisError):
        await residue.look(deaf, TARGET)


async def test_a_scan_takes_as_long_as_its_largest_table(resources: "Resources") -> None:
    from dataclasses import replace

    from models import database
    from models.patience import Patience

    url = resources.settings.stores.database_url.get_secret_value()
    async with (
        database.connect(url, size=2, patience=Patience(for_statement=0.5)) as hurried,
        diary(resources, "whose", "uuid", SUBJECT) as name,
        resources.database.pool.acquire() as other,
    ):
        holding = other.transaction()
        await holding.start()
        await other.execute(f"LOCK TABLE {name}")
        scan = asyncio.create_task(residue.look(replace(resources, database=hurried), TARGET))
        await other.execute("SELECT pg_sleep(1.2)")  # more than a statement usually may take
        assert not scan.done()
        await holding.rollback()
        assert (await scan).found == {f"{name}.whose": 1}
