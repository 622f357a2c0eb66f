"""A storm: producers go on posting while everything around them is killed, paused, flushed, restarted and lied to.

By hand: `python -m tests.chaos.storm --seconds 120 --seed 7`. It ends with what it found, and exits with 1 when
anything was lost, came twice, got stuck or told a text to somebody.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from cli.keys import Wanted, mint
from jobs.resources import Resources, opened
from models import space as spaces
from tests.chaos.accounting import Auditor, Books, problems
from tests.chaos.deployment import Deployment, deployed, eventually
from tests.chaos.weather import TEXTS, Weather

PEOPLE = 8  # in each space
_SETTLES_WITHIN = 120.0  # seconds


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
    """One storm over one deployment."""

    deployment: Deployment
    resources: Resources
    backends: list[Backend]
    weather: Weather
    ledger: Ledger = field(default_factory=Ledger)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    async def rage(self, seconds: float) -> None:
        """Producers and weather, for at least so long."""
        async with asyncio.TaskGroup() as tasks:
            for backend in self.backends:
                for person in range(PEOPLE):
                    tasks.create_task(self._produce(backend, f"person-{person}", random.Random(person)))
            await self.weather.blow(seconds)
            self._over.set()

    async def _produce(self, backend: Backend, person: str, chance: random.Random) -> None:
        """Turn after turn, each sent until it is accepted."""
        accepted = self.ledger.accepted.setdefault(backend.space, {})
        while not self._over.is_set():
            words = [self._word() for _ in range(chance.randint(1, 3))]
            turns = [{"id": word, "role": "user", "content": f"My parcel is {word}, it is late"} for word in words]
            body = {"agent": "support", "conversation_id": f"case-{chance.randrange(2)}", "turns": turns}
            answer = await self.insist("/v1/turns", body, backend.of(person))
            assert answer["accepted"] + answer["duplicates"] == len(words)
            owner = UUID(answer["memory_identity"]["id"].removeprefix("sub_"))
            accepted |= dict.fromkeys(words, owner)
            self.weather.answered.set()
            await asyncio.sleep(chance.uniform(0.02, 0.25))

    async def insist(self, path: str, body: dict[str, Any] | None, headers: dict[str, str]) -> dict[str, Any]:
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

    async def calm_down(self) -> None:
        """The model is well; until no turn is pending and no work is under way, within bounds."""
        await self.deployment.ready()
        await self.deployment.play("good")
        async with self.weather.redis() as redis:
            await redis.flushall()  # with it go the pauses that the ill model earned
        deadline = time.monotonic() + _SETTLES_WITHIN
        while (left := await self._unfinished()) and time.monotonic() < deadline:
            for backend in self.backends:
                for person in range(PEOPLE):
                    await self.insist("/v1/observations/flush", {"agent": "support"}, backend.of(f"person-{person}"))
            await asyncio.sleep(0.5)
        self.weather.told += [f"after {_SETTLES_WITHIN:g} s there is still {one}" for one in left]

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
                await self.insist(f"/v1/quarantine/{held['id']}/retry", None, backend.headers)
                sent += 1
        return sent

    async def findings(self) -> tuple[list[str], list[Books]]:
        """What is wrong, and the books of each space."""
        wrong, every = list(self.weather.told), []
        for backend in self.backends:
            books = await Auditor(self.resources.database, self.resources.keys, backend.space).books()
            wrong += problems(books, self.ledger.accepted[backend.space])
            every.append(books)
        await self.weather.look_into_redis()
        async with self.weather.redis() as redis:
            for queue in ("interactive", "memory", "housekeeping"):
                await eventually(lambda queue=queue: redis.zcard(f"afterturn:{queue}"), lambda left: left == 0, 20)
        return [*wrong, *self._told_on_disk()], every

    def _told_on_disk(self) -> Iterator[str]:
        """Every text that a log, a table or a journal holds in the clear: there must never be one."""
        for file in self.deployment.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # PostgreSQL takes files away
                for text in TEXTS.findall(file.read_bytes() if file.is_file() else b"")[:3]:
                    yield f"{file.relative_to(self.deployment.folder)} holds {text.decode()}"


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
        yield Storm(deployment, resources, backends, Weather(deployment, random.Random(seed)))


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
        "happened": storm.weather.happened,
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
