"""Asking the model on behalf of a unit of work: never twice for the same answer, never faster than allowed.

No database connection is held while the model thinks, and no worker slot while somebody must wait: waiting is
`Wait`, which the job turns into a later try of the same work.
"""

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from memory.outcome import Answer, Outcome, Prompt
from models import model_answer, model_usage
from models.announcement import Event, announce_once
from models.database import Database, driver
from models.model_answer import SEALED_ANSWER, ModelAnswer
from models.model_usage import ModelUsage
from models.work import Claim
from privacy.sealing import SealingKey

_UNTIL_TOMORROW = 900.0  # seconds between looks at a space's daily cap


class Language(Protocol):
    """A model that answers."""

    async def ask(self, prompt: Prompt) -> Answer: ...


class Pace(Protocol):
    """What all workers share about one provider."""

    async def acquire(self, tokens: int) -> float: ...

    async def observe(self, answer: Answer) -> None: ...


class Wait(Exception):
    """The question must wait: `seconds` where somebody said how long, else as the retry policy says."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.why, self.seconds = why, seconds


@dataclass(frozen=True, slots=True)
class Asker:
    """One deployment's way to its model. `model` is what usage is recorded under, `daily_tokens` a space's cap or 0."""

    database: Database
    language: Language
    pace: Pace
    model: str
    daily_tokens: int

    async def ask(self, claim: Claim, subject: UUID, key: SealingKey, prompt: Prompt) -> Answer:
        """The answer, kept from an earlier run of this work or had now. Raises Wait for what passes by itself."""
        step = _step(claim, prompt)
        kept = await self._kept(claim, step, key)
        if kept is not None:
            return kept
        await self._wait_for_leave(claim, prompt)
        began = time.monotonic()
        answer = await self.language.ask(prompt)
        await self.pace.observe(answer)
        await self._record(claim, subject, key, step, answer, int(1000 * (time.monotonic() - began)))
        if answer.outcome.transient:
            raise Wait(answer.outcome, answer.retry_after)
        return answer

    async def _kept(self, claim: Claim, step: str, key: SealingKey) -> Answer | None:
        async with self.database.begin(claim.space_id) as tx:
            sealed = await model_answer.kept(tx, claim.space_id, claim.id, step)
        if sealed is None:
            return None
        outcome, text, finish = json.loads(key.open(sealed, SEALED_ANSWER))
        return Answer(Outcome(outcome), text, finish_reason=finish)

    async def _wait_for_leave(self, claim: Claim, prompt: Prompt) -> None:
        if self.daily_tokens and await self._is_spent(claim.space_id):
            raise Wait("daily_cap", _UNTIL_TOMORROW)
        # Four characters a token is near enough for a rate; the usage rows hold what the server counted.
        wait = await self.pace.acquire((len(prompt.instructions) + len(prompt.data)) // 4)
        if wait > 0:
            raise Wait("paced", wait)

    async def _is_spent(self, space: int) -> bool:
        """Whether the space has used up its tokens of today; the first to find it so tells the space's webhooks."""
        async with self.database.begin(space) as tx:
            day, spent = await model_usage.spent_today(tx, space)
            if spent < self.daily_tokens:
                return False
            capped: dict[str, str | int] = {
                "cap": "model_daily_tokens",
                "tokens": self.daily_tokens,
                "day": day.isoformat(),
            }
            await announce_once(await driver(tx), space, Event.USAGE_CAPPED, capped)
        return True

    async def _record(
        self, claim: Claim, subject: UUID, key: SealingKey, step: str, answer: Answer, latency_ms: int
    ) -> None:
        """Keeps what was paid for, and what it cost, before anything is made of it."""
        usage = ModelUsage(
            space_id=claim.space_id,
            work_id=claim.id,
            job=claim.kind,
            model=self.model,
            outcome=answer.outcome,
            input_tokens=answer.usage.input_tokens,
            cached_tokens=answer.usage.cached_tokens,
            output_tokens=answer.usage.output_tokens,
            latency_ms=latency_ms,
        )
        sealed = key.seal(json.dumps([answer.outcome, answer.text, answer.finish_reason]), SEALED_ANSWER)
        async with self.database.begin(claim.space_id) as tx:
            tx.add(usage)
            if not answer.outcome.transient:
                await model_answer.keep(
                    tx,
                    ModelAnswer(
                        work_id=claim.id, step=step, space_id=claim.space_id, subject_id=subject, sealed=sealed
                    ),
                )


def _step(claim: Claim, prompt: Prompt) -> str:
    """Names a question by a hash of all of it, and of the try: a crash finds the answer again, a new try asks anew."""
    asked = f"{claim.attempt - claim.crashes}\0{prompt.instructions}\0{prompt.data}"
    return hashlib.sha256(asked.encode()).hexdigest()[:32]
