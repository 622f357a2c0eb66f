"""The heartbeat: prolongs all that a worker holds in one statement, and hears what it must stop."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog
from asyncpg import Pool

from models import claim as claims
from models.claim import Renewed
from models.work import Claim
from scheduler import outage
from scheduler.errand import Errand, Stop
from scheduler.outage import Outage

_BEATS = 3  # in the length of a claim
_LAST_WORDS = 0.25  # seconds; a run that has just committed looks as if it had lost its claim

_log = structlog.get_logger()


class Heartbeat:
    """What the worker holds, and the pulse that keeps it."""

    def __init__(self, pool: Pool, owner: str, lasts: timedelta, away: Outage) -> None:
        self._pool, self._owner, self._lasts, self._away = pool, owner, lasts, away
        self.held: set[Errand[Any]] = set()

    async def keep_beating(self) -> None:
        """Until cancelled. A beat that fails is repeated soon: the claims may well outlive the outage."""
        pause = self._lasts.total_seconds() / _BEATS
        while True:
            await asyncio.sleep(pause / 4 if self._away.lasting else pause)
            await self.beat()

    async def beat(self) -> None:
        """One renewal."""
        held = {claim.id: errand for errand in self.held if errand.worth_renewing for claim in errand.claims}
        if not held:
            return
        try:
            async with asyncio.timeout(self._lasts.total_seconds() / _BEATS), self._pool.acquire() as connection:
                renewed = await claims.renew(connection, self._owner, _all(held), self._lasts)
        except outage.DATABASE as error:
            self._away.began(error)
        else:
            self._away.ended()
            self._heed(held, {one.id: one for one in renewed})

    def _heed(self, held: Mapping[int, Errand[Any]], renewed: Mapping[int, Renewed]) -> None:
        for work_id, errand in held.items():
            if work_id not in renewed:
                asyncio.get_running_loop().call_later(_LAST_WORDS, self._let_go, errand)
            elif renewed[work_id].stop:
                errand.stop(Stop.ASKED)

    def _let_go(self, errand: Errand[Any]) -> None:
        if errand in self.held and not errand.settling:
            _log.warning("claim_lost", kind=errand.claims[0].kind, work_id=errand.claims[0].id)
            errand.stop(Stop.LOST)


def _all(held: Mapping[int, Errand[Any]]) -> list[Claim]:
    return [claim for errand in dict.fromkeys(held.values()) for claim in errand.claims]
