"""The deployment's master key is changed while everything runs: no key is lost, and the former one ends up opening none."""

import asyncio
import base64
import os
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateways import key_store, rewrapping, signing
from gateways.key_store import KeyGone, KeyStore
from gateways.master_proof import WrongMasterKey
from gateways.rewrapping import NothingToRotate
from privacy import sealing
from privacy.sealing import Unreadable

if TYPE_CHECKING:
    from config.settings import Settings

OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))


async def filled(url: str, count: int) -> dict[UUID, str]:
    """A store begun with the old key: some keys, and a text that each has sealed."""
    async with key_store.connect(url, OLD) as store:
        await signing.load(store)
        ids = [uuid4() for _ in range(count)]
        rows = [(one, "subject", sealing.wrap(OLD, one, one.bytes * 2)) for one in ids]
        await store.pool.executemany("INSERT INTO wrapped_keys (id, purpose, wrapped) VALUES ($1, $2, $3)", rows)
    return {one: sealing.SealingKey(one, one.bytes * 2).seal(one.hex, "test") for one in ids}  # type: ignore[misc]  # sealed bytes


async def reads_all(store: KeyStore, texts: dict[UUID, str]) -> bool:
    keys = await store.keys(list(texts))
    return all(keys[one].open(sealed, "test") == one.hex for one, sealed in texts.items())  # type: ignore[arg-type]


async def by_master(store: KeyStore) -> dict[bytes, int]:
    rows = await store.pool.fetch(
        "SELECT master, count(*) AS n FROM (SELECT master FROM wrapped_keys UNION ALL SELECT master FROM signing_keys"
        " WHERE master IS NOT NULL) k GROUP BY master"
    )
    return {row["master"]: row["n"] for row in rows}


async def opens(url: str, master: bytes, former: bytes | None = None) -> bool:
    try:
        async with key_store.connect(url, master, former, size=1):
            return True
    except WrongMasterKey:
        return False


async def test_every_key_and_the_signing_key_are_wrapped_anew_and_the_former_master_key_opens_none(
    keys_url: str,
) -> None:
    texts = await filled(keys_url, 1_203)
    heard: list[int] = []
    async with key_store.connect(keys_url, NEW, OLD) as store:
        signer = await signing.load(store)
        assert await rewrapping.waiting(store) == 1_204
        assert await rewrapping.rotate(store, heard.append) == 1_204
        assert sum(heard) == 1_204
        assert await by_master(store) == {sealing.fingerprint(NEW): 1_204}
    assert not await opens(keys_url, OLD)
    async with key_store.connect(keys_url, NEW) as alone:
        assert await reads_all(alone, texts)
        assert (await signing.load(alone)).public == signer.public
        for row in await alone.pool.fetch("SELECT id, wrapped FROM wrapped_keys"):
            with pytest.raises(Unreadable):
                sealing.unwrap(OLD, row["id"], row["wrapped"])


async def test_a_retired_signing_key_has_nothing_to_wrap(keys_url: str) -> None:
    async with key_store.connect(keys_url, OLD) as store:
        first = await signing.rotate(store)
    async with key_store.connect(keys_url, NEW, OLD) as store:
        assert await rewrapping.rotate(store) == 1
        assert (await signing.load(store)).public == first.public
        assert (await signing.rotate(store)).public != first.public


@pytest.mark.parametrize(
    ("when", "keys", "word"),
    [
        ("before", (NEW, None), "put that one back"),
        ("before", (NEW, OTHER), "neither"),
        ("before", (OTHER, NEW), "neither"),
        ("between", (NEW, None), "AFTERTURN_MASTER_KEY_PREVIOUS"),
        ("between", (OLD, None), "AFTERTURN_MASTER_KEY_PREVIOUS"),
        ("between", (NEW, OTHER), "AFTERTURN_MASTER_KEY_PREVIOUS"),
        ("after", (OLD, None), "put that one back"),
        ("after", (OLD, OTHER), "neither"),
    ],
)
async def test_a_process_that_lacks_a_master_key_of_the_store_is_refused_and_told_which(
    keys_url: str, when: str, keys: tuple[bytes, bytes | None], word: str
) -> None:
    await filled(keys_url, 3)
    if when != "before":
        async with key_store.connect(keys_url, NEW, OLD) as store:
            if when == "after":
                await rewrapping.rotate(store)
            else:
                await _stopped_after(1, store)
    with pytest.raises(WrongMasterKey, match=word):
        async with key_store.connect(keys_url, *keys):
            pytest.fail("it was let in")


async def test_both_keys_are_taken_before_between_and_after(keys_url: str) -> None:
    await filled(keys_url, 3)
    assert await opens(keys_url, NEW, OLD)
    async with key_store.connect(keys_url, NEW, OLD) as store:
        await _stopped_after(1, store)
        assert await opens(keys_url, NEW, OLD)
        assert await opens(keys_url, OLD, NEW)  # the wrong way round loses nothing
        await rewrapping.rotate(store)
    assert await opens(keys_url, NEW, OLD)
    assert await opens(keys_url, NEW)


async def test_without_a_former_key_there_is_nothing_to_rotate(keys_url: str) -> None:
    async with key_store.connect(keys_url, NEW, NEW) as store:
        with pytest.raises(NothingToRotate):
            await rewrapping.rotate(store)


async def test_a_rotation_that_is_through_may_be_run_again(keys_url: str) -> None:
    await filled(keys_url, 3)
    async with key_store.connect(keys_url, NEW, OLD) as store:
        assert [await rewrapping.rotate(store), await rewrapping.rotate(store)] == [4, 0]


async def test_processes_that_run_meanwhile_make_and_read_keys_all_along(keys_url: str) -> None:
    texts = await filled(keys_url, 2_000)
    async with AsyncExitStack() as stack:
        rotating, running = [await stack.enter_async_context(key_store.connect(keys_url, NEW, OLD)) for _ in range(2)]
        made: dict[UUID, str] = {}
        through = asyncio.Event()

        async def serve() -> None:
            while not (through.is_set() and len(made) > 50):
                key = await running.make(uuid4(), "subject")
                made[key.id] = key.seal(key.id.hex, "test")  # type: ignore[assignment]
                running.forget(key.id)
                await running.key(key.id)

        server = asyncio.create_task(serve())
        await rewrapping.rotate(rotating)
        through.set()
        async with asyncio.timeout(20):
            await server
        assert (await by_master(running)).keys() == {sealing.fingerprint(NEW)}
        await running.key_of_deployment(uuid4(), "suppression")
    async with key_store.connect(keys_url, NEW) as alone:
        assert await reads_all(alone, texts | made)


async def test_a_process_that_wraps_by_the_former_key_turns_to_the_new_one_when_that_is_retired(keys_url: str) -> None:
    await filled(keys_url, 1)
    async with key_store.connect(keys_url, NEW, OLD) as running:
        key = await running.make(uuid4(), "subject")
        assert sealing.fingerprint(NEW) not in await by_master(running)
        async with key_store.connect(keys_url, NEW, OLD) as rotating:
            await rewrapping.rotate(rotating)
        for made in (await running.make(uuid4(), "subject"), await running.key_of_deployment(uuid4(), "suppression")):
            running.forget(made.id)
            assert (await running.key(made.id)).id == made.id
        assert (await running.key(key.id)).id == key.id
        assert (await by_master(running)).keys() == {sealing.fingerprint(NEW)}


async def test_a_signing_key_that_takes_over_right_after_is_wrapped_by_the_new_master_key(keys_url: str) -> None:
    async with key_store.connect(keys_url, OLD) as store:
        await signing.load(store)
    async with key_store.connect(keys_url, NEW, OLD) as running:
        async with key_store.connect(keys_url, NEW, OLD) as rotating:
            await rewrapping.rotate(rotating)
        await signing.rotate(running)
        assert await by_master(running) == {sealing.fingerprint(NEW): 1}


async def test_two_rotations_at_once_wrap_each_key_once(keys_url: str) -> None:
    texts = await filled(keys_url, 3_000)
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(key_store.connect(keys_url, NEW, OLD)) for _ in range(2)]
        assert sum(await asyncio.gather(*map(rewrapping.rotate, stores))) == 3_001
        assert await reads_all(stores[0], texts)
    assert not await opens(keys_url, OLD)


async def test_what_is_erased_meanwhile_stays_erased_and_what_is_held_is_waited_for(keys_url: str) -> None:
    texts = await filled(keys_url, 5)
    gone = next(iter(texts))
    async with key_store.connect(keys_url, NEW, OLD) as store, key_store.connect(keys_url, NEW, OLD) as other:
        async with store.pool.acquire() as connection, connection.transaction():
            await connection.execute("DELETE FROM wrapped_keys WHERE id = $1", gone)
            rotation = asyncio.create_task(rewrapping.rotate(other))
            await _until_all_but(other, 1)
            assert not rotation.done()
        async with asyncio.timeout(10):
            assert await rotation == 5  # the four that are left, and the signing key
        with pytest.raises(KeyGone):
            await other.key(gone)


async def test_one_unreadable_key_stops_it_and_nothing_is_taken_away(keys_url: str) -> None:
    texts = await filled(keys_url, 3)
    async with key_store.connect(keys_url, NEW, OLD) as store:
        some = next(iter(texts))
        await store.pool.execute("UPDATE wrapped_keys SET wrapped = wrapped || '\\x00'::bytea WHERE id = $1", some)
        with pytest.raises(Unreadable):
            await rewrapping.rotate(store)
        assert await opens(keys_url, NEW, OLD)
        await store.destroy([some])
        await rewrapping.rotate(store)
    assert await opens(keys_url, NEW)


async def test_postgresql_lets_no_master_key_go_that_still_wraps_something(keys_url: str) -> None:
    await filled(keys_url, 1)
    async with key_store.connect(keys_url, OLD) as store:
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await store.pool.execute("DELETE FROM master_keys")
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await store.pool.execute(
                "INSERT INTO wrapped_keys (id, purpose, wrapped) VALUES ($1, 'subject', $2)",
                *(uuid4(), sealing.wrap(OTHER, uuid4(), OTHER)),
            )


async def test_killed_in_the_middle_it_goes_on_where_it_was(keys_url: str, settings: "Settings") -> None:
    texts = await filled(keys_url, 20_000)
    command = (sys.executable, "-m", "cli", "keys", "rotate-master", "--json")
    async with key_store.connect(keys_url, NEW, OLD) as store:
        killed = await asyncio.create_subprocess_exec(*command, env=_environment(settings, keys_url))
        async with asyncio.timeout(60):
            while sealing.fingerprint(NEW) not in await by_master(store):
                assert killed.returncode is None
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        left = (await by_master(store))[sealing.fingerprint(OLD)]
        assert 0 < left < 20_001
        assert await reads_all(store, texts)
        assert await rewrapping.rotate(store) <= left
    async with key_store.connect(keys_url, NEW) as alone:
        assert await reads_all(alone, texts)
    assert not await opens(keys_url, OLD)


def _environment(settings: "Settings", keys_url: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AFTERTURN_")},
        "DATABASE_URL": settings.stores.database_url.get_secret_value(),
        "REDIS_URL": settings.stores.redis_url.get_secret_value(),
        "AFTERTURN_KEYS_URL": keys_url,
        "AFTERTURN_MASTER_KEY": base64.b64encode(NEW).decode(),
        "AFTERTURN_MASTER_KEY_PREVIOUS": base64.b64encode(OLD).decode(),
    }


class _Stopped(Exception):
    pass


async def _stopped_after(batches: int, store: KeyStore) -> None:
    """A rotation that ends after some of its batches, as one that is killed."""
    heard: list[int] = []

    def hear(count: int) -> None:
        heard.append(count)
        if len(heard) == batches:
            raise _Stopped

    with pytest.raises(_Stopped):
        await rewrapping.rotate(store, hear)


async def _until_all_but(store: KeyStore, left: int) -> None:
    async with asyncio.timeout(10):
        while (await by_master(store)).get(sealing.fingerprint(OLD)) != left:
            continue
