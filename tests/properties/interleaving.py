"""A machine that interleaves everything that can happen to logs, one transaction at a time, as a seed says.

A run of a job stops before each of its transactions and before each answer, until the machine lets it go on. So a run
can be overtaken, killed, or wake up after its claim is somebody else's, at every point at which that can happen.
"""

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from gateways.scripted_behaviour import Asked
from gateways.scripted_echo import echo
from jobs.asking import Asker
from jobs.resources import Workshop
from jobs.verdict import Later, Nothing
from memory.outcome import Answer, Outcome, Prompt
from models import claim as claims
from models import release, work
from models.claim import Crowded, Rung, Terms
from models.database import Database
from models.work import Claim, Superseded
from recall.quarantine import ReleasedAlready, retry
from recall.restore import LiveAlready, NoSuchGeneration, restore
from scheduler.__main__ import JOBS
from tests.chaos.accounting import Auditor, problems
from tests.integration.logbook import Book, word

_TERMS = Terms("machine", "memory", tuple(JOBS), timedelta(seconds=60), 100)


@dataclass(slots=True)
class Gate:
    """Where a run stops until it is let on."""

    _at_gate: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def stop(self) -> None:
        self._opened.clear()
        self._at_gate.set()
        await self._opened.wait()

    async def let_on(self, run: "asyncio.Task[Any]") -> None:
        """Until the run stops again, or ends."""
        self._at_gate.clear()
        self._opened.set()
        await self.reached(run)

    async def reached(self, run: "asyncio.Task[Any]") -> None:
        """Waits until the run stops here, or has ended."""
        at_gate = asyncio.create_task(self._at_gate.wait())
        await asyncio.wait([run, at_gate], return_when=asyncio.FIRST_COMPLETED)
        at_gate.cancel()


@dataclass(frozen=True, slots=True)
class GatedDatabase:
    """The database, a gate before each transaction."""

    database: Database
    gate: Gate

    @asynccontextmanager
    async def begin(self, space: int) -> AsyncIterator[AsyncSession]:
        await self.gate.stop()
        async with self.database.begin(space) as tx:
            yield tx


@dataclass(frozen=True, slots=True)
class Oracle:
    """A model that notes each word once, babbles about the poisoned ones, and is down as long as `down` holds."""

    gate: Gate
    poisoned: set[str]
    down: list[bool]

    async def ask(self, prompt: Prompt) -> Answer:
        await self.gate.stop()
        if self.down:
            return Answer(Outcome.PROVIDER_ERROR)
        asked = Asked({"messages": [{"role": "user", "content": prompt.data}]})
        if any(one in prompt.data for one in self.poisoned):
            return Answer(Outcome.OK, "there is much to be said on the matter", finish_reason="stop")
        return Answer(Outcome.OK, echo(asked), finish_reason="stop")


class NoPace:
    """Nobody waits for a provider here."""

    async def acquire(self, tokens: int) -> float:  # noqa: ARG002 - as the protocol has it
        return 0.0

    async def observe(self, answer: Answer) -> None:
        """Nothing to learn."""


@dataclass(slots=True)
class Run:
    """One run of a claimed job, alive or paused."""

    claim: Claim
    gate: Gate
    task: "asyncio.Task[Any]"


@dataclass(slots=True)
class Machine:
    """Some people's logs in one space. `accepted` says whose each promised word is."""

    books: list[Book]
    auditor: Auditor
    chance: random.Random
    runs: list[Run] = field(default_factory=list)
    accepted: dict[str, Any] = field(default_factory=dict)
    poisoned: set[str] = field(default_factory=set)
    down: list[bool] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def step(self) -> None:
        """Something happens; then the books must be right."""
        name = self.chance.choices(list(_STEPS), list(_STEPS.values()))[0]
        if name not in {"go_on", "kill", "pause_too_long"} or self.runs:
            self.history.append(name)
            await getattr(self, name)()
            await self.check()

    async def check(self) -> None:
        books = await self.auditor.books()
        wrong = problems(books, self.accepted)
        for number, log in books.logs.items():
            if log["observed_through"] < self.cursors.get(number, 0):
                wrong.append(f"the cursor of log {number} went back to {log['observed_through']}")
            self.cursors[number] = log["observed_through"]
        assert not wrong, f"{wrong} after {' '.join(self.history[-40:])}"

    async def say(self) -> None:
        book = self.chance.choice(self.books)
        words = [word(next(self.numbers)) for _ in range(self.chance.randint(1, 6))]
        role = self.chance.choice(["user", "user", "user", "assistant", "system"])
        more = {"no_memory": True} if self.chance.random() < 0.1 else {}
        turns = [{"role": role, "content": f"My parcel is {one}"} for one in words]
        await book.say(*turns, conversation=self.chance.choice(["a", "b"]), **more)
        self.accepted |= dict.fromkeys(words, book.key.owner)
        if self.chance.random() < 0.08:
            self.poisoned.add(words[0])

    async def begin(self) -> None:
        """A worker claims some work and starts; what waits until later is due now."""
        book = self.books[0]
        rows = await book.resources.database.pool.fetch(
            "UPDATE work SET run_at = least(run_at, now()) WHERE space_id = $1 AND state = 'ready' RETURNING id, epoch",
            book.space,
        )
        if not rows:
            return
        row = self.chance.choice(sorted(rows))
        for claim in await self._claimed(Rung(*row)):
            await self._start(claim)

    async def _claimed(self, rung: Rung) -> list[Claim]:
        async with self.books[0].resources.database.pool.acquire() as connection:
            while True:
                with contextlib.suppress(Crowded):
                    return await claims.rung(connection, _TERMS, [rung], 1)

    async def _start(self, claim: Claim) -> None:
        gate, shop = Gate(), self.books[0].workshop
        database: Any = GatedDatabase(shop.database, gate)
        asker = Asker(database, Oracle(gate, self.poisoned, self.down), NoPace(), "oracle", 0)
        workshop = replace(shop, database=database, asker=asker, room=20_000)
        run = Run(claim, gate, asyncio.create_task(self._work(claim, workshop)))
        self.runs.append(run)
        await gate.reached(run.task)

    async def _work(self, claim: Claim, workshop: Workshop) -> None:
        try:
            verdict = await JOBS[claim.kind].function(claim, workshop)
        except Superseded:
            self.seen["superseded"] += 1
            return
        self.seen[f"{claim.kind} {type(verdict).__name__}"] += 1
        async with self.books[0].resources.database.pool.acquire() as connection:
            if isinstance(verdict, Nothing):
                await work.complete_held(connection, [claim])
            if isinstance(verdict, Later):
                await release.retry_later(connection, claim, timedelta(0), verdict.error, counts=verdict.counts)

    async def go_on(self) -> None:
        """One of the runs does its next transaction, or hears its answer, and perhaps what comes after that."""
        run = self.chance.choice(self.runs)
        for _ in range(self.chance.choice((1, 1, 2, 3, 8))):
            await run.gate.let_on(run.task)
            if run.task.done():
                self.runs.remove(run)
                run.task.result()  # raises what it raised
                return

    async def kill(self) -> None:
        """A worker dies, and its claim ends."""
        run = self.chance.choice(self.runs)
        self.runs.remove(run)
        run.task.cancel()
        await asyncio.wait([run.task])
        await self._expire(run)

    async def pause_too_long(self) -> None:
        """A worker is stopped for longer than its claim; it will wake up and know nothing of it."""
        self.seen["paused"] += 1
        await self._expire(self.chance.choice(self.runs))

    async def _expire(self, run: Run) -> None:
        pool = self.books[0].resources.database.pool
        await pool.execute(
            "UPDATE work SET claimed_until = now() - interval '1 second' WHERE id = $1 AND epoch = $2",
            *(run.claim.id, run.claim.epoch),
        )
        async with pool.acquire() as connection:
            await release.recover_expired(connection, {})

    async def flush(self) -> None:
        await self.chance.choice(self.books).post("/v1/observations/flush")

    async def go_down(self) -> None:
        self.down.append(True)

    async def come_back(self) -> None:
        self.down.clear()

    async def heal(self) -> None:
        self.poisoned.clear()

    async def release(self) -> None:
        """An operator sends a turn back."""
        book = self.books[0]
        for held in (await book.quarantine())[:1]:
            try:
                await retry(book.resources, book.space, None, held.id)
            except ReleasedAlready:
                raise AssertionError("a record that is held was released already") from None

    async def restore(self) -> None:
        """An operator brings an earlier generation back."""
        book = self.chance.choice(self.books)
        live = (await self.auditor.books()).live_generation(book.key.owner)
        number = self.chance.randint(max(1, live - 3), max(1, live - 1))
        try:
            await restore(book.resources, book.space, book.key.owner, book.agent, "corporate", number)
        except (LiveAlready, NoSuchGeneration):
            return
        self.seen["restored"] += 1

    async def delete_log(self) -> None:
        """As an erasure does, whatever runs."""
        book = self.chance.choice(self.books)
        await book.write("DELETE FROM logs WHERE space_id = $1 AND subject_id = $2", book.space, book.key.owner)
        for table in ("turns", "observations", "generations", "quarantine"):  # as the eraser does, once the log is gone
            orphans = (
                f"DELETE FROM {table} t WHERE space_id = $1 AND NOT EXISTS (SELECT FROM logs l WHERE l.id = t.log_id)"  # noqa: S608
            )
            await book.write(orphans, book.space)
        self.accepted = {one: owner for one, owner in self.accepted.items() if owner != book.key.owner}

    async def settle(self) -> None:
        """Everybody wakes up, everything heals, and all work is done."""
        self.down.clear()
        self.poisoned.clear()
        while self.runs:
            await self.go_on()
        for _ in range(2):
            for _ in await self.books[0].quarantine():
                await self.release()
            while await self.books[0].waiting():
                await self.begin()
                while self.runs:
                    await self.go_on()
        await self.check()
        states = await self.books[0].states()
        assert set(states) <= {"observed", "skipped"}, states


_STEPS = {
    "say": 6.0,
    "begin": 8.0,
    "go_on": 20.0,
    "kill": 1.5,
    "pause_too_long": 1.5,
    "flush": 1.0,
    "go_down": 0.4,
    "come_back": 1.2,
    "heal": 0.3,
    "release": 1.0,
    "restore": 3.0,
    "delete_log": 0.25,
}
