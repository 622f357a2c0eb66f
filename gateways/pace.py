"""The pace of model calls, shared by all workers through Redis; without Redis each process keeps its own."""

import asyncio
import time

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateways.pace_rules import SCRIPT, Limits, LocalPace, arguments
from memory.outcome import Answer, Outcome

_ANSWERS_WITHIN = 0.5  # seconds; a Redis that hangs must not hold up a model call
_TRIED_AGAIN_AFTER = 5.0  # seconds
_UNNAMED_PAUSE = 5.0  # seconds, after a rate limit that names none

_log = structlog.get_logger()


class Pace:
    """Ask `acquire` before a model call and tell `observe` how it ended. Neither raises, nor waits by itself."""

    def __init__(self, redis: Redis, provider: str, limits: Limits) -> None:
        """Workers whose `provider` is equal share one pace. `redis` stays the caller's to close."""
        self._limits, self._arguments = limits, arguments(limits)
        self._key = f"afterturn:pace:{provider}"
        self._script = redis.register_script(SCRIPT)
        self._local = LocalPace(limits, time.monotonic())
        self._redis_tried_at: float | None = None  # when it last failed

    async def acquire(self, tokens: int) -> float:
        """Seconds to wait before asking again; 0 says go. `tokens` are the call's input and its longest output."""
        wait = await self._shared("acquire", tokens)
        return self._local.acquire(tokens, time.monotonic()) if wait is None else wait

    async def pause(self, seconds: float) -> None:
        """No call starts for so long, at any worker; at most 15 minutes."""
        self._local.pause(seconds, time.monotonic())
        await self._shared("pause", seconds)

    async def observe(self, answer: Answer) -> None:
        """What an answer says about its provider: failing, asking for a pause, or alive."""
        if answer.outcome in (Outcome.PROVIDER_ERROR, Outcome.TIMEOUT):
            self._local.failed(time.monotonic())
            await self._shared("failed")
        else:
            self._local.answered()
            await self._shared("answered")
        if answer.outcome is Outcome.RATE_LIMIT:
            await self.pause(_UNNAMED_PAUSE if answer.retry_after is None else answer.retry_after)
        elif answer.retry_after:
            await self.pause(answer.retry_after)

    async def _shared(self, verb: str, number: float = 0) -> float | None:
        """The script's answer, or None while Redis gives none."""
        if self._redis_tried_at is not None and time.monotonic() - self._redis_tried_at < _TRIED_AGAIN_AFTER:
            return None
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                wait = float(await self._script(keys=[self._key], args=[verb, number, *self._arguments]))
        except (RedisError, OSError, TimeoutError) as error:
            if self._redis_tried_at is None:
                _log.warning("pace_became_local", error=type(error).__name__)
            self._redis_tried_at = time.monotonic()
            return None
        if self._redis_tried_at is not None:
            _log.info("pace_became_shared")
            self._redis_tried_at = None
        return wait
