"""A storm: producers go on posting while everything around them is killed, paused, flushed, restarted and lied to.

By hand: `python -m tests.chaos.storm --seconds 120 --seed 7`. It ends with what it found, and exits with 1 when
anything was lost, came twice, got stuck or told a text to somebody.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from redis.asyncio import Redis
from redis.exceptions import RedisError

from cli.keys import Wanted, mint
from jobs.resources import Resources, opened
from models import space as spaces
from tests.chaos.accounting import Auditor, Books, problems
from tests.chaos.deployment import Deployment, deployed, eventually

MIX = {
    "play": {
        "good": 30,
        "slow": 40,
        "fenced": 6,
        "prose": 5,
        "truncated": 5,
        "babble": 5,
        "garbage": 2,
        "empty": 4,
        "refusal": 4,
        "loop": 4,
        "rate_limited": 1,
        "server_error": 2,
    },
    "seconds": 1.2,
    "retry_after": "1",
}
PEOPLE = 8  # in each space
_SETTLES_WITHIN = 120.0  # seconds
_TEXTS = re.compile(rb"tok-[b-df-hj-np-tv-z]{1,9}q\b|person-\d|case-\d|My parcel")


@dataclass(frozen=True, slots=True)
class Backend:
    """A chat server of one space, which speaks for many people."""

    space: int
    headers: dict[str, str]

    def of(self, person: str) -> dict[str, str]:
        return {**self.headers, "X-Canonical-User": person}


@dataclass(slots=True)
class Ledger:
    """What was promised: each word whose turn was accepted, and whose it is."""

    accepted: dict[int, dict[str, UUID]] = field(default_factory=dict)
    resent: int = 0


@dataclass(slots=True)
class Storm:
    """One storm over one deployment. `happened` counts what the weather did."""

    deployment: Deployment
    resources: Resources
    backends: list[Backend]
    chance: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    happened: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    async def rage(self, seconds: float) -> None:
        """Producers and weather, everything at least once, for so long; afterwards every process runs."""
        await self.deployment.play({**MIX, "seed": self.chance.randrange(1_000)})
        async with asyncio.TaskGroup() as tasks:
            for backend in self.backends:
                for person in range(PEOPLE):
                    tasks.create_task(self._produce(backend, f"person-{person}", random.Random(person)))
            keeper = tasks.create_task(self._keep_alive())
            tasks.create_task(self._blow(seconds)).add_done_callback(lambda _: keeper.cancel())

    async def _keep_alive(self) -> None:
        """A process that comes up while PostgreSQL is away ends; somebody starts it again."""
        while True:
            await asyncio.sleep(0.5)
            self.happened["ended_by_itself"] += sum(program.revive() for program in self.deployment.programs())

    async def _blow(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self.happened or time.monotonic() < ends:
            # Everything once before anything comes again; the outage last, for after it workers keep away for a while.
            for event in (*self.chance.sample(WEATHER, len(WEATHER)), Storm._model_out):
                self.happened[event.__name__.strip("_")] += 1
                await event(self)
                await asyncio.sleep(self.chance.uniform(0.1, 0.6))
        self._over.set()
        for program in self.deployment.programs():
            program.send(signal.SIGCONT)
            program.revive()

    # --- what chat servers do

    async def _produce(self, backend: Backend, person: str, chance: random.Random) -> None:
        """Turn after turn, each sent until it is accepted."""
        accepted = self.ledger.accepted.setdefault(backend.space, {})
        while not self._over.is_set():
            words = [self._word() for _ in range(chance.randint(1, 3))]
            turns = [{"id": word, "role": "user", "content": f"My parcel is {word}, it is late"} for word in words]
            body = {"agent": "support", "conversation_id": f"case-{chance.randrange(2)}", "turns": turns}
            answer = await self._insist("/v1/turns", body, backend.of(person))
            assert answer["accepted"] + answer["duplicates"] == len(words)
            owner = UUID(answer["memory_identity"]["id"].removeprefix("sub_"))
            accepted |= dict.fromkeys(words, owner)
            self._answered.set()
            await asyncio.sleep(chance.uniform(0.02, 0.25))

    async def _insist(self, path: str, body: dict[str, Any] | None, headers: dict[str, str]) -> dict[str, Any]:
        """Sends it until it is answered as it should be."""
        while True:
            try:
                answer = await self.deployment.http.post(self.deployment.url + path, json=body, headers=headers)
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.is_success:
                said: dict[str, Any] = answer.json()
                return said
            if answer is not None and answer.status_code < 500:
                raise AssertionError(f"{path} answered {answer.status_code}: {answer.text}")
            self.ledger.resent += 1
            await asyncio.sleep(0.1)

    def _word(self) -> str:
        self._number += 1
        letters, number = "", self._number
        while number:
            number, at = divmod(number, 20)
            letters += "bcdfghjklmnpqrstvwxz"[at]
        return f"tok-{letters}q"

    # --- the weather

    async def _worker_killed(self) -> None:
        worker = self.chance.choice(self.deployment.workers)
        await worker.kill()
        worker.start()

    async def _worker_paused(self) -> None:
        """For longer than its claim, so that it wakes up to find others at its work."""
        worker = self.chance.choice(self.deployment.workers)
        worker.send(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(3.5, worker.send, signal.SIGCONT)

    async def _worker_replaced(self) -> None:
        await self.chance.choice(self.deployment.workers).replace()

    async def _scheduler_killed(self) -> None:
        scheduler = self.chance.choice(self.deployment.schedulers)
        await scheduler.kill()
        scheduler.start()

    async def _api_killed_right_after_an_answer(self) -> None:
        self._answered.clear()
        await self._answered.wait()
        await self.deployment.api.kill()
        self.deployment.api.start()
        await self.deployment.ready()

    async def _model_out(self) -> None:
        await self.deployment.play("server_error")
        await asyncio.sleep(3)
        await self.deployment.play({**MIX, "seed": self.chance.randrange(1_000)})

    async def _redis_flushed(self) -> None:
        with contextlib.suppress(RedisError):
            await self._look_into_redis()
            async with self._redis() as redis:
                await redis.flushall()

    async def _redis_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.valkey.restart)

    async def _data_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.data.restart)

    async def _data_crashed(self) -> None:
        await asyncio.to_thread(self.deployment.data.kill)
        await asyncio.to_thread(self.deployment.data.restart)

    async def _keys_restarted(self) -> None:
        await asyncio.to_thread(self.deployment.keys.restart)

    @asynccontextmanager
    async def _redis(self) -> AsyncIterator[Redis]:
        redis = Redis.from_url(self.deployment.valkey.url)
        try:
            yield redis
        finally:
            await redis.aclose()

    async def _look_into_redis(self) -> None:
        """Notes every text that Redis holds: there must never be one."""
        async with self._redis() as redis:
            async for key in redis.scan_iter():
                kind = await redis.type(key)
                read: dict[bytes, Callable[[], Awaitable[Any]]] = {
                    b"string": lambda key=key: redis.get(key),
                    b"zset": lambda key=key: redis.zrange(key, 0, -1),
                    b"hash": lambda key=key: redis.hgetall(key),
                    b"list": lambda key=key: redis.lrange(key, 0, -1),
                    b"set": lambda key=key: redis.smembers(key),
                }
                held = f"{key!r} {await read[kind]() if kind in read else ''!r}"
                self.told += [f"Redis holds {text.decode()}" for text in _TEXTS.findall(held.encode())]

    # --- afterwards

    async def calm_down(self) -> None:
        """The model is well; until no turn is pending and no work is under way, within bounds."""
        await self.deployment.ready()
        await self.deployment.play("good")
        async with self._redis() as redis:
            await redis.flushall()  # with it go the pauses that the ill model earned
        deadline = time.monotonic() + _SETTLES_WITHIN
        while (left := await self._unfinished()) and time.monotonic() < deadline:
            for backend in self.backends:
                for person in range(PEOPLE):
                    await self._insist("/v1/observations/flush", {"agent": "support"}, backend.of(f"person-{person}"))
            await asyncio.sleep(0.5)
        self.told += [f"after {_SETTLES_WITHIN:g} s there is still {one}" for one in left]

    async def _unfinished(self) -> list[str]:
        query = """
            SELECT kind || ' ' || state || ' on ' || scope FROM work WHERE state IN ('ready', 'claimed')
            UNION ALL SELECT 'log ' || id || ' with ' || pending_turns FROM logs WHERE pending_turns > 0
        """
        async with self.resources.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            return [row[0] for row in await connection.fetch(query)]

    async def effects(self) -> dict[str, int]:
        """What the storm did to the work: how models answered, how runs ended, what reflections were made."""
        query = """
            SELECT 'model ' || outcome AS what, count(*) AS often FROM model_usage GROUP BY 1
            UNION ALL SELECT 'work ' || state, count(*) FROM work GROUP BY 1
            UNION ALL SELECT 'crashes', sum(crashes) FROM work UNION ALL SELECT 'waits', sum(waits) FROM work
            UNION ALL SELECT 'made by ' || made_by, count(*) FROM generations GROUP BY 1
            UNION ALL SELECT 'set aside', count(*) FROM quarantine
        """
        async with self.resources.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            return {row["what"]: int(row["often"] or 0) for row in await connection.fetch(query)}

    async def send_back_the_quarantined(self) -> int:
        """An operator has every turn that was set aside tried again."""
        sent = 0
        for backend in self.backends:
            answer = await self.deployment.http.get(
                f"{self.deployment.url}/v1/quarantine", params={"limit": 500}, headers=backend.headers
            )
            for held in answer.json()["quarantine"]:
                await self._insist(f"/v1/quarantine/{held['id']}/retry", None, backend.headers)
                sent += 1
        return sent

    async def findings(self) -> tuple[list[str], list[Books]]:
        """What is wrong, and the books of each space."""
        wrong, every = list(self.told), []
        for backend in self.backends:
            books = await Auditor(self.resources.database, self.resources.keys, backend.space).books()
            wrong += problems(books, self.ledger.accepted[backend.space])
            every.append(books)
        await self._look_into_redis()
        async with self._redis() as redis:
            for queue in ("interactive", "memory", "housekeeping"):
                await eventually(lambda queue=queue: redis.zcard(f"afterturn:{queue}"), lambda left: left == 0, 20)
        return [*wrong, *self._told_on_disk()], every

    def _told_on_disk(self) -> Iterator[str]:
        """Every text that a log, a table or a journal holds in the clear: there must never be one."""
        for file in self.deployment.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # PostgreSQL takes files away
                for text in _TEXTS.findall(file.read_bytes() if file.is_file() else b"")[:3]:
                    yield f"{file.relative_to(self.deployment.folder)} holds {text.decode()}"


WEATHER = [
    Storm._worker_killed,
    Storm._worker_killed,
    Storm._worker_paused,
    Storm._worker_paused,
    Storm._worker_replaced,
    Storm._scheduler_killed,
    Storm._api_killed_right_after_an_answer,
    Storm._redis_flushed,
    Storm._redis_restarted,
    Storm._data_restarted,
    Storm._data_crashed,
    Storm._keys_restarted,
]


@asynccontextmanager
async def brewing(
    deployment: Deployment, seed: int, names: tuple[str, ...] = ("north", "south")
) -> AsyncIterator[Storm]:
    """A storm that is about to break over spaces of a deployment: keys are minted, nothing has happened yet."""
    async with opened(deployment.settings) as resources:
        backends = []
        for name in names:
            wanted = Wanted(
                *(name, "chat", "turns:write,memory:read,operator"),
                owner="backend",
                admin=True,
                allow_impersonation=True,
            )
            minted = await mint(resources, wanted)
            found = await spaces.named(resources.database.pool, name)
            assert found is not None
            backends.append(Backend(found[0], {"Authorization": f"Bearer {minted.secret}"}))
        yield Storm(deployment, resources, backends, random.Random(seed))


async def _run(seconds: float, seed: int, folder: Path) -> int:
    async with deployed(folder) as deployment, brewing(deployment, seed) as storm:
        await storm.rage(seconds)
        began = time.monotonic()
        await storm.calm_down()
        settled = time.monotonic() - began
        wrong, before = await storm.findings()
        sent_back = await storm.send_back_the_quarantined()
        await storm.calm_down()
        still_wrong, after = await storm.findings()
        effects = await storm.effects()
    report = {
        "seed": seed,
        "accepted": sum(map(len, storm.ledger.accepted.values())),
        "sent_again": storm.ledger.resent,
        "happened": storm.happened,
        "effects": effects,
        "settled_within": round(settled, 1),
        "states": sum((books.states for books in before), Counter[str]()),
        "sent_back": sent_back,
        "states_then": sum((books.states for books in after), Counter[str]()),
        "wrong": [*wrong, *still_wrong][:50],
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if wrong or still_wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="storm", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--folder", type=Path, help="kept afterwards; else a temporary one")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-")))
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_run(options.seconds, options.seed, folder))


if __name__ == "__main__":
    sys.exit(main())
