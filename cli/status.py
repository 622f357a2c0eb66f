"""`afterturn status`: what waits, what runs, what went wrong, over all spaces."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from cli.output import answer, table
from cli.reach import with_stores
from jobs import wire
from jobs.letters import QueueClass
from jobs.resources import Resources, rhythm
from models import backlog, quarantine
from models.backlog import Depth, PendingLogs
from models.database import driver
from models.governance import Governed, governed


@dataclass(frozen=True, slots=True)
class Standing:
    """A deployment at one instant.

    `workers` maps `host:pid` to its queue classes, as their health keys say; None where Redis does not answer.
    """

    memory_on: bool
    queue: list[Depth]
    logs: PendingLogs
    quarantine: int
    governance: Governed
    workers: dict[str, list[str]] | None


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """Prints where the deployment stands."""
    standing = with_stores(data_dir, taken)
    answer(_document(standing), _lines(standing), as_json=as_json)


async def taken(resources: Resources) -> Standing:
    """Looks once, over all spaces."""
    pace = rhythm(resources.settings)
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        depths = await backlog.depths(connection)
        logs = await backlog.pending_logs(connection, pace)
        held = await quarantine.held_in_all(tx)
        stands = await governed(connection)
    memory_on = resources.settings.memory.observational_memory
    return Standing(memory_on, depths, logs, held, stands, await workers(resources))


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


def _document(standing: Standing) -> dict[str, object]:
    return {
        "memory": "on" if standing.memory_on else "off",
        "queue": {name: dict(_counts(standing.queue, name)) for name in QueueClass},
        "logs_pending": standing.logs.pending,
        "logs_due": standing.logs.due,
        "turns_pending": standing.logs.turns,
        "tokens_pending": standing.logs.tokens,
        "oldest_pending": standing.logs.oldest,
        "lag_seconds": round(standing.logs.lag.total_seconds(), 3),
        "quarantine": standing.quarantine,
        **dict(_plainly(standing.governance)),
        "workers": standing.workers,
    }


def _lines(standing: Standing) -> Iterator[str]:
    rows = [(name, *(dict(_counts(standing.queue, name)).values())) for name in QueueClass]
    yield from table(rows, ("QUEUE", "WAITING", "DUE", "RUNNING", "DEAD", "DUE FOR"))
    yield ""
    logs, oldest = standing.logs, standing.logs.oldest
    if not standing.memory_on:
        yield "memory          off: turns are kept, nothing is observed"
    yield f"logs            {logs.due} due, {logs.pending} with pending turns"
    yield f"pending         {logs.turns} turns, {logs.tokens} tokens{_since(oldest)}"
    yield f"lag             {round(standing.logs.lag.total_seconds())} s"
    yield f"quarantine      {standing.quarantine}"
    yield from _governance(standing.governance)
    yield f"workers alive   {_told(standing.workers)}"


def _governance(stands: Governed) -> Iterator[str]:
    yield f"unsealed        {stands.receipts_unsealed} receipts{_for(stands.unsealed_for)}"
    yield f"past its term   {'rows are still there' + _for(stands.expired_for) if stands.expired_for else 'nothing'}"
    yield f"erasing         {stands.erasures}{_for(stands.erasing_for)}"


def _for(wait: timedelta) -> str:
    return f", the first for {round(wait.total_seconds())} s" if wait else ""


def _plainly(stands: Governed) -> Iterator[tuple[str, float]]:
    for name, value in stands._asdict().items():
        yield (f"{name}_seconds", round(value.total_seconds(), 3)) if isinstance(value, timedelta) else (name, value)


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
