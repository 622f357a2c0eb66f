"""`afterturn status`: what waits, what runs, what went wrong, over all spaces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy import text

from cli.output import answer, table
from cli.reach import with_stores
from jobs import wire
from jobs.letters import QueueClass
from jobs.resources import Resources, rhythm
from models import backlog
from models.backlog import Depth
from models.database import driver
from models.log import Rhythm

_LOGS = text("""
WITH pending AS (
    SELECT pending_turns, pending_tokens, oldest_pending_at,
           CASE WHEN flush_through > observed_through OR pending_tokens > :threshold THEN oldest_pending_at
                ELSE oldest_pending_at + :max_age END AS due_at
    FROM logs WHERE pending_turns > 0
)
SELECT count(*) AS pending, count(*) FILTER (WHERE due_at <= now()) AS due,
       coalesce(sum(pending_turns), 0)::bigint AS turns, coalesce(sum(pending_tokens), 0)::bigint AS tokens,
       min(oldest_pending_at) AS oldest, coalesce(now() - min(due_at) FILTER (WHERE due_at <= now()), interval '0') AS lag
FROM pending
""")
_HELD = text("SELECT count(*) FROM quarantine WHERE released_at IS NULL")


@dataclass(frozen=True, slots=True)
class Standing:
    """A deployment at one instant. `lag` is how long the log that waits longest has been due.

    `workers` maps `host:pid` to its queue classes, as their health keys say; None where Redis does not answer.
    """

    memory_on: bool
    queue: list[Depth]
    logs: Mapping[str, Any]
    quarantine: int
    workers: dict[str, list[str]] | None

    @property
    def lag(self) -> timedelta:
        lag: timedelta = self.logs["lag"]
        return lag


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """Prints where the deployment stands."""
    standing = with_stores(data_dir, taken)
    answer(_document(standing), _lines(standing), as_json=as_json)


async def taken(resources: Resources) -> Standing:
    """Looks once, over all spaces."""
    pace = rhythm(resources.settings)
    async with resources.database.begin_everywhere() as tx:
        depths = await backlog.depths(await driver(tx))
        logs = (await tx.execute(_LOGS, _terms(pace))).mappings().one()
        held = int((await tx.execute(_HELD)).scalar_one())
    memory_on = resources.settings.memory.observational_memory
    return Standing(memory_on, depths, dict(logs), held, await workers(resources))


async def workers(resources: Resources) -> dict[str, list[str]] | None:
    """Who has shown a sign of life within the last seconds."""
    found: dict[str, list[str]] = {}
    redis = Redis.from_url(resources.settings.stores.redis_url.get_secret_value(), socket_connect_timeout=2)
    try:
        for queue_class in QueueClass:
            prefix = f"arq:{wire.queue(queue_class)}:"
            async for key in redis.scan_iter(f"{prefix}*", count=1000):
                found.setdefault(key.decode().removeprefix(prefix), []).append(queue_class)
    except (RedisError, OSError):
        return None
    finally:
        await redis.aclose()
    return found


def _terms(pace: Rhythm) -> dict[str, object]:
    return {"threshold": pace.threshold, "max_age": pace.max_age}


def _document(standing: Standing) -> dict[str, object]:
    return {
        "memory": "on" if standing.memory_on else "off",
        "queue": {name: dict(_counts(standing.queue, name)) for name in QueueClass},
        "logs_pending": standing.logs["pending"],
        "logs_due": standing.logs["due"],
        "turns_pending": standing.logs["turns"],
        "tokens_pending": standing.logs["tokens"],
        "oldest_pending": standing.logs["oldest"],
        "lag_seconds": round(standing.lag.total_seconds(), 3),
        "quarantine": standing.quarantine,
        "workers": standing.workers,
    }


def _lines(standing: Standing) -> Iterator[str]:
    rows = [(name, *(dict(_counts(standing.queue, name)).values())) for name in QueueClass]
    yield from table(rows, ("QUEUE", "WAITING", "DUE", "RUNNING", "DEAD", "DUE FOR"))
    yield ""
    logs, oldest = standing.logs, standing.logs["oldest"]
    if not standing.memory_on:
        yield "memory          off: turns are kept, nothing is observed"
    yield f"logs            {logs['due']} due, {logs['pending']} with pending turns"
    yield f"pending         {logs['turns']} turns, {logs['tokens']} tokens{_since(oldest)}"
    yield f"lag             {round(standing.lag.total_seconds())} s"
    yield f"quarantine      {standing.quarantine}"
    yield f"workers alive   {_told(standing.workers)}"


def _counts(queue: list[Depth], name: str) -> Iterator[tuple[str, object]]:
    by_state = {depth.state: depth for depth in queue if depth.queue_class == name}
    ready = by_state.get("ready")
    yield "waiting", ready.rows if ready else 0
    yield "due", ready.due if ready else 0
    yield "running", by_state["claimed"].rows if "claimed" in by_state else 0
    yield "dead", by_state["dead"].rows if "dead" in by_state else 0
    yield "due_for_seconds", round(ready.oldest.total_seconds()) if ready and ready.due else 0


def _since(oldest: datetime | None) -> str:
    return f", the oldest since {oldest:%Y-%m-%d %H:%M:%S} UTC" if oldest else ""


def _told(workers: dict[str, list[str]] | None) -> str:
    if workers is None:
        return "unknown: Redis does not answer"
    return f"{len(workers)} ({', '.join(sorted(workers))})" if workers else "0: start one with `afterturn worker`"
