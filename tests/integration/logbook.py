"""One person's log, driven by hand: turns come in over the API, work is claimed, run and settled step by step."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx
from sqlmodel import col, select

from api.app import create_app
from config.settings import Settings
from gateways.scripted_behaviour import Asked
from gateways.scripted_echo import echo
from gateways.scripted_model import Script, ScriptedModel, scripted
from jobs.observe import observe
from jobs.reflect import reflect
from jobs.remask import remask
from jobs.resources import Resources, Workshop, furnished
from jobs.verdict import Later, Nothing, Verdict
from memory.observation import Line
from models import claim as claims
from models import log as logs
from models import observation, release, work
from models.claim import Rung, Terms
from models.content import open_line, open_turn
from models.database import driver
from models.log import Log
from models.model_answer import ModelAnswer
from models.quarantine import Quarantined
from models.turn import StoredTurn
from models.work import Claim, Work

_JOBS = {"observe": observe, "reflect": reflect, "remask": remask}
_models = itertools.count(1)
_names = itertools.count(1)
_CONSONANTS = "bcdfghjklmnpqrstvwxz"  # no word, no number: nothing that is masked or read as a date


def token() -> str:
    """A word that nobody has said yet; the scripted model notes it."""
    return word(next(_names))


def word(number: int) -> str:
    """The word of that number."""
    letters = ""
    for _ in range(5):
        number, at = divmod(number, len(_CONSONANTS))
        letters += _CONSONANTS[at]
    return f"tok-{letters}"


def changed(settings: Settings, **fields: Any) -> Settings:
    """The settings with some fields changed, whatever concern they belong to."""
    update = {}
    for name, concern in settings:
        mine = {field: value for field, value in fields.items() if field in type(concern).model_fields}
        update[name] = concern.model_copy(update=mine)
    return Settings(**update)


@dataclass(slots=True)
class Book:
    """The log of one key's owner with one agent. `model` is its scripted server, or None where the built-in thinks."""

    client: httpx.AsyncClient
    resources: Resources
    workshop: Workshop
    key: Any
    model: ScriptedModel | None
    agent: str = "support"

    @property
    def space(self) -> int:
        return int(self.key.space)

    async def say(self, *turns: Any, conversation: str = "c-1", **more: Any) -> dict[str, Any]:
        """Posts turns: a string is a user's."""
        told = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in turns]
        return await self.post("/v1/turns", {"conversation_id": conversation, "turns": told, **more})

    async def say_words(self, turns: int) -> list[str]:
        """As many turns with a word each, which the scripted model notes."""
        words = [token() for _ in range(turns)]
        await self.say(*(f"My parcel is {one}" for one in words))
        return words

    async def assert_each_noted_once(self, words: Sequence[str]) -> None:
        """All of it is observed, each word in one line, and nothing waits or is left behind."""
        assert sorted(line.text for line in await self.lines()) == sorted(f"{one} came up" for one in words)
        assert await self.states() == {"observed": len(words)}
        log = await self.log()
        assert (log.pending_turns, log.pending_tokens, log.oldest_pending_at) == (0, 0, None)
        assert log.observed_through == log.last_seq
        assert await self.waiting() == []
        assert await self.answers_kept() == 0

    async def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.client.post(path, json={"agent": self.agent, **(body or {})}, headers=self.key.headers)
        assert answer.is_success, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def coverage(self) -> dict[str, Any]:
        return await self.post("/v1/coverage/read")

    async def claim(self, kind: str = "observe") -> Claim:
        """Time passes until this log's work is due, and a worker claims it."""
        pool = self.resources.database.pool
        row = await pool.fetchrow(
            "UPDATE work SET run_at = least(run_at, now()) WHERE space_id = $1 AND kind = $2 AND state = 'ready'"
            " RETURNING id, epoch",
            *(self.space, kind),
        )
        assert row is not None, f"nothing to {kind}"
        terms = Terms("test", "memory", (kind,), timedelta(seconds=60), 100)
        async with pool.acquire() as connection:
            (claim,) = await claims.rung(connection, terms, [Rung(row["id"], row["epoch"])], 1)
        return claim

    async def run(self, kind: str = "observe", claim: Claim | None = None) -> Verdict:
        """One run of the waiting work, settled as a worker does."""
        claim = claim or await self.claim(kind)
        verdict = await _JOBS[claim.kind](claim, self.workshop)
        await self.settle(claim, verdict)
        return verdict

    async def settle(self, claim: Claim, verdict: Verdict) -> None:
        """Writes down what became of a run."""
        async with self.resources.database.pool.acquire() as connection:
            if isinstance(verdict, Nothing):
                await work.complete(connection, claim)
            if isinstance(verdict, Later):
                delay = timedelta(seconds=verdict.seconds or 0)
                await release.retry_later(connection, claim, delay, verdict.error, counts=verdict.counts)

    async def crash(self, claim: Claim) -> None:
        """The worker that holds the claim is dead, and somebody notices."""
        pool = self.resources.database.pool
        await pool.execute("UPDATE work SET claimed_until = now() - interval '1 second' WHERE id = $1", claim.id)
        async with pool.acquire() as connection:
            await release.recover_expired(connection, {})

    async def run_until_idle(self, most: int = 200) -> list[Verdict]:
        """Runs whatever waits for this log until nothing does; answers the verdicts."""
        verdicts: list[Verdict] = []
        while kinds := await self.waiting():
            verdicts.append(await self.run(kinds[0]))
            assert len(verdicts) < most, verdicts[-5:]
        return verdicts

    async def waiting(self) -> list[str]:
        """The kinds of work that wait, those that are due first first."""
        return [row.kind for row in await self.work("ready")]

    async def work(self, *states: str) -> Sequence[Work]:
        query = select(Work).where(col(Work.space_id) == self.space, col(Work.state).in_(states))
        async with self.resources.database.begin(self.space) as tx:
            return (await tx.execute(query.order_by(col(Work.run_at)))).scalars().all()

    async def log(self) -> Log:
        async with self.resources.database.begin(self.space) as tx:
            found = await logs.find(tx, self.space, self.key.owner, self.agent, "corporate")
        assert found is not None
        return found

    async def rows(self, table: type[Any]) -> Sequence[Any]:
        """Every row of a table that belongs to this space, in the order of its making."""
        async with self.resources.database.begin(self.space) as tx:
            rows = (await tx.execute(select(table).where(table.space_id == self.space))).scalars().all()
        return sorted(rows, key=lambda row: (row.created_at, getattr(row, "id", 0)))

    async def turns(self) -> Sequence[StoredTurn]:
        return sorted(await self.rows(StoredTurn), key=lambda row: row.seq)

    async def states(self) -> Counter[str]:
        return Counter(row.state for row in await self.turns())

    async def texts(self) -> list[str]:
        key = await self.resources.keys.key(self.key.owner)
        return [open_turn(row, key).text for row in await self.turns()]

    async def lines(self, generation: int | None = None) -> list[Line]:
        """The lines of a generation, by default the live one."""
        key, log = await self.resources.keys.key(self.key.owner), await self.log()
        async with self.resources.database.begin(self.space) as tx:
            rows = await observation.of_generation(tx, log.id, generation or log.generation)
        return [open_line(row, key) for row in rows]

    async def quarantine(self) -> list[Quarantined]:
        return [row for row in await self.rows(Quarantined) if row.released_at is None]

    async def answers_kept(self) -> int:
        return len(await self.rows(ModelAnswer))

    async def delete_log(self) -> None:
        """As an erasure does."""
        for table in ("logs", "turns", "observations", "generations", "quarantine"):
            await self.write(f"DELETE FROM {table} WHERE space_id = $1", self.space)  # noqa: S608 - names of this test

    async def heal(self) -> None:
        """The model server is well again, and every pause that it asked for is over."""
        assert self.model is not None
        self.model.play("good")
        asker = self.workshop.asker
        assert asker is not None
        await asker.pace._script.registered_client.delete(asker.pace._key)  # type: ignore[attr-defined]  # the real one's

    async def write(self, statement: str, *arguments: Any) -> None:
        """A statement of somebody else's."""
        async with self.resources.database.begin(self.space) as tx:
            await (await driver(tx)).execute(statement, *arguments)


@dataclass(frozen=True, slots=True)
class Shelf:
    """What books are opened with: this session's fixtures of the same names."""

    settings: Settings
    resources: Resources
    mint: Any
    serving: Any
    client: httpx.AsyncClient

    @asynccontextmanager
    async def opened(
        self, script: Script | None = None, answer: Callable[[Asked], str] = echo, key: Any = None, **fields: Any
    ) -> AsyncIterator[Book]:
        """A log in a space of its own, or a `key`'s; with a `script`, a model server. `fields` change the settings."""
        async with AsyncExitStack() as stack:
            model = None if script is None else await stack.enter_async_context(scripted(script, answer=answer))
            if model is not None:
                # The name is new each time: workers that ask one model at one address share a pace.
                named = {"memory_worker_model": f"cheap-{next(_models)}", "model_base_url": model.url}
                fields = {**named, **fields}
            mine = replace(self.resources, settings=changed(self.settings, **fields))
            client = self.client
            if mine.settings.memory != self.settings.memory:
                client = await stack.enter_async_context(self.serving(create_app(mine.settings)))
            workshop = await stack.enter_async_context(furnished(mine))
            key = key or await self.mint(scopes=("turns:write", "memory:read", "operator"))
            book = Book(client, mine, workshop, key, model)
            yield book
            # Nobody else's workers shall find work here.
            await self.resources.database.pool.execute("DELETE FROM work WHERE space_id = $1", book.space)
            await book.delete_log()
