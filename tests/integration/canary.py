"""A machine that erases somebody in the middle of everything else: each word that they ever said is a canary.

Two people in one space: the victim, and a loud neighbour whose log goes on. Where the victim is a `guest`, they talk as an
end user in the neighbour's log, so that their turns stand among another's. Runs stop before each of their transactions and
answers, and are let on, killed or overtaken as a seed says.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from intake.erasure import Wish, accept
from intake.identity import People
from jobs.asking import Asker
from jobs.resources import Workshop
from jobs.verdict import Later, Nothing
from models import claim as claims
from models import release, work
from models.claim import Crowded, Rung, Terms
from models.database import Database
from models.subject import HandleKind
from models.work import Claim, Superseded
from recall import export
from recall.restore import LiveAlready, NoSuchGeneration, restore
from scheduler.__main__ import JOBS
from tests.integration.erasing import seal
from tests.integration.logbook import Book, token
from tests.properties.interleaving import Gate, NoPace, Oracle, Run

_TERMS = Terms("canary", "memory", tuple(JOBS), timedelta(seconds=60), 1_000)


@dataclass(frozen=True, slots=True)
class Gated:
    """The database, a gate before each transaction; what the eraser's batches use goes past it."""

    database: Database
    gate: Gate

    @asynccontextmanager
    async def begin(self, space: int) -> AsyncIterator[Any]:
        await self.gate.stop()
        async with self.database.begin(space) as tx:
            yield tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self.database, name)


@dataclass(slots=True)
class Canary:
    """`words` are the victim's from before the erasure; `later` those of whoever came back afterwards."""

    book: Book
    workshop: Workshop
    chance: random.Random
    guest: bool
    victim: str = field(default_factory=token)
    loud: str = field(default_factory=token)
    words: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    loud_words: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    down: list[bool] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    erasure: UUID | None = None

    async def subject(self, name: str, kind: HandleKind = HandleKind.CANONICAL_USER) -> UUID:
        people = People(self.book.resources.database, self.book.resources.keys)
        found = await people.subject(self.book.space, self.book.key.lookup_key, (kind, name), make=True)
        assert found is not None
        return found

    async def the_victim(self) -> UUID:
        return await self.subject(self.victim, HandleKind.END_USER if self.guest else HandleKind.CANONICAL_USER)

    async def step(self) -> None:
        name = self.chance.choices(list(_STEPS), list(_STEPS.values()))[0]
        if name not in {"go_on", "kill", "pause_too_long"} or self.runs:
            await getattr(self, name)()

    async def say(self) -> None:
        """The victim says something; whoever says it after the erasure is somebody new."""
        said = [token() for _ in range(self.chance.randint(1, 4))]
        named = {"X-Canonical-User": self.loud, "X-End-User": self.victim}
        headers = named if self.guest else {"X-Canonical-User": self.victim}
        accepted_before = self.erasure is None
        await self._post(said, headers, f"thread-{self.victim}")
        (self.words if accepted_before else self.later).extend(said)

    async def say_loudly(self) -> None:
        said = [token() for _ in range(self.chance.randint(1, 4))]
        await self._post(said, {"X-Canonical-User": self.loud}, "thread-of-the-loud")
        self.loud_words.extend(said)

    async def _post(self, words: list[str], headers: dict[str, str], conversation: str) -> None:
        turns = [{"role": "user", "content": f"My parcel is {word}"} for word in words]
        body = {"agent": "support", "conversation_id": conversation, "turns": turns}
        answer = await self.book.client.post("/v1/turns", json=body, headers={**self.book.key.headers, **headers})
        assert answer.status_code == 202, answer.text

    async def be_called(self) -> None:
        """Somebody registers what the victim is called, and an account of theirs."""
        name, account = token(), token()
        kind = HandleKind.END_USER if self.guest else HandleKind.CANONICAL_USER
        handles = [{"handle_kind": kind, "handle": self.victim}, {"handle_kind": "account", "handle": account}]
        accepted_before = self.erasure is None
        answer = await self.book.client.put(
            "/v1/subjects", json={"handles": handles, "names": [f"Zo {name}"]}, headers=self.book.key.headers
        )
        assert answer.status_code == 200, answer.text
        (self.words if accepted_before else self.later).extend((name, account))
        self.seen["called"] += 1

    async def ask_for_export(self) -> None:
        with contextlib.suppress(export.NobodyThere):
            await export.ask(self.book.resources, export.Request(self.book.space, await self._known(), "key_test"))
            self.seen["asked for export"] += 1

    async def _known(self) -> UUID:
        # The person that was, also once nobody is: an operator may ask by an old id.
        return self.erased if self.erasure is not None else await self.the_victim()

    erased: UUID = field(default_factory=lambda: UUID(int=0))

    async def restore(self) -> None:
        with contextlib.suppress(LiveAlready, NoSuchGeneration):
            who = await self.subject(self.loud) if self.guest else await self._known()
            number = self.chance.randint(1, 3)
            await restore(self.book.resources, self.book.space, who, "support", "corporate", number)
            self.seen["restored"] += 1

    async def accept(self) -> None:
        """From here on nothing of the victim may be written."""
        if self.erasure is None:
            self.erased = await self.the_victim()
            wish = Wish(self.book.space, "subject_request", "key_test", subject=self.erased)
            self.erasure, _ = await accept(self.book.resources, wish)
            self.seen[f"accepted over {len(self.runs)} runs"] += 1

    async def begin(self) -> None:
        rows = await self.book.resources.database.pool.fetch(
            "UPDATE work SET run_at = least(run_at, now()) WHERE space_id = $1 AND state = 'ready' AND kind = ANY ($2)"
            " RETURNING id, epoch",
            *(self.book.space, [kind for kind in JOBS if kind not in {"seal", "expire_export"}]),
        )
        if rows:
            for claim in await self._claimed(Rung(*self.chance.choice(sorted(rows)))):
                await self._start(claim)

    async def _claimed(self, rung: Rung) -> list[Claim]:
        async with self.book.resources.database.pool.acquire() as connection:
            while True:
                with contextlib.suppress(Crowded):
                    return await claims.rung(connection, _TERMS, [rung], 1)

    async def _start(self, claim: Claim) -> None:
        gate = Gate()
        database: Any = Gated(self.workshop.database, gate)
        asker = Asker(database, Oracle(gate, set(), self.down), NoPace(), "oracle", 0)
        workshop = replace(self.workshop, database=database, asker=asker, room=20_000)
        run = Run(claim, gate, asyncio.create_task(self._work(claim, workshop)))
        self.runs.append(run)
        await gate.reached(run.task)

    async def _work(self, claim: Claim, workshop: Workshop) -> None:
        try:
            verdict: Any = await JOBS[claim.kind].function(claim, workshop)
        except Superseded:
            self.seen["superseded"] += 1
            return
        except Exception as error:  # noqa: BLE001 - as the worker does: whatever a job raises is a reason to try again
            verdict = Later(None, type(error).__name__)
        self.seen[f"{claim.kind} {type(verdict).__name__}"] += 1
        async with self.book.resources.database.pool.acquire() as connection:
            if isinstance(verdict, Nothing):
                await work.complete_held(connection, [claim])
            if isinstance(verdict, Later):
                await release.retry_later(connection, claim, timedelta(0), verdict.error, counts=verdict.counts)

    async def go_on(self) -> None:
        run = self.chance.choice(self.runs)
        for _ in range(self.chance.choice((1, 1, 2, 3, 8))):
            await run.gate.let_on(run.task)
            if run.task.done():
                self.runs.remove(run)
                run.task.result()
                return

    async def kill(self) -> None:
        run = self.chance.choice(self.runs)
        self.runs.remove(run)
        run.task.cancel()
        await asyncio.wait([run.task])
        await self._expire(run)

    async def pause_too_long(self) -> None:
        await self._expire(self.chance.choice(self.runs))

    async def _expire(self, run: Run) -> None:
        pool = self.book.resources.database.pool
        await pool.execute(
            "UPDATE work SET claimed_until = now() - interval '1 second' WHERE id = $1 AND epoch = $2",
            *(run.claim.id, run.claim.epoch),
        )
        await self._recover()

    async def _recover(self) -> None:
        async with self.book.resources.database.pool.acquire() as connection:
            await release.recover_expired(connection, {})

    async def seal(self) -> None:
        await seal(self.book.resources, self.book.space)

    async def go_down(self) -> None:
        self.down.append(True)

    async def come_back(self) -> None:
        self.down.clear()

    async def settle(self) -> None:
        """Everybody wakes up, and all work is done."""
        self.down.clear()
        await self.accept()
        for _ in range(200):
            while self.runs:
                await self.go_on()
            await self._recover()
            await self.seal()
            if not await self._waiting():
                return
            await self.begin()
        raise AssertionError(f"it does not come to rest: {await self._waiting()}")

    async def _waiting(self) -> list[str]:
        return [
            row.kind for row in await self.book.work("ready", "claimed") if row.kind not in {"seal", "expire_export"}
        ]

    async def stop(self) -> None:
        for run in self.runs:
            run.task.cancel()
            await asyncio.wait([run.task])


def keyed(key: Any, **headers: str) -> Any:
    """A key that always speaks for somebody."""
    return SimpleNamespace(
        id=key.id,
        secret=key.secret,
        space=key.space,
        lookup_key=key.lookup_key,
        owner=key.owner,
        headers={**key.headers, **headers},
    )


_STEPS = {
    "say": 5.0,
    "say_loudly": 4.0,
    "begin": 8.0,
    "go_on": 20.0,
    "kill": 1.5,
    "pause_too_long": 1.5,
    "be_called": 0.8,
    "ask_for_export": 0.6,
    "restore": 0.8,
    "go_down": 0.4,
    "come_back": 1.2,
    "seal": 0.5,
    "accept": 0.6,
}
