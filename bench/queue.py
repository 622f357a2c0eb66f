"""How fast is the queue? No-op jobs a second of one worker, claimed and completed durably, beside durable peers.

A peer is none of our dependencies: it runs when an interpreter that has it is named, else it is left out by name.

    python -m bench.queue --peer pgqueuer=/venv/bin/python --peer saq=/other/bin/python

`single_ratio` is ours against the best peer, `bulk_ratio` against pgqueuer in batches of 32; medians over the rounds,
in which all take turns. `p50_ms` is from the begin of the enqueuing transaction to the begin of the job, idle.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from arq.worker import Worker, func

from gateways import embedded_postgres, embedded_valkey
from jobs.bell import connect

_PEERS = ("pgqueuer", "procrastinate", "saq")
_HERE = Path(__file__).parent

Figures = dict[str, float]


def main() -> None:
    """Prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=4000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        postgres, valkey = (
            embedded_postgres.start(Path(folder) / "data"),
            embedded_valkey.start(Path(folder) / "valkey"),
        )
        try:
            peers = dict(peer.split("=", 1) for peer in options.peer)
            medians = _rounds(postgres.url, valkey.url, peers, options.rounds, options.jobs)
        finally:
            valkey.stop()
            postgres.stop()
    print(json.dumps(_summary(medians)))


def _rounds(url: str, redis_url: str, peers: dict[str, str], rounds: int, jobs: int) -> dict[str, Figures]:
    taken: dict[str, list[Figures]] = defaultdict(list)
    for _ in range(rounds):
        taken["ours"].append(_run([sys.executable, "-m", "bench.queue_ours", url, redis_url, str(jobs)]))
        for name, python in peers.items():
            # The slower ones get fewer, so that a round stays short.
            many = jobs if name == "pgqueuer" else jobs // 4
            taken[name].append(_run([python, str(_HERE / "peers" / "no_ops.py"), name, url, str(many)]))
    taken["arq"].append(asyncio.run(_arq_as_it_comes(redis_url)))
    return {
        name: {key: statistics.median(figures[key] for figures in each) for key in each[0]}
        for name, each in taken.items()
    }


def _run(command: list[str]) -> Figures:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"{command[1:4]} failed: {done.stderr[-800:]}")
    figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


async def _arq_as_it_comes(redis_url: str, jobs: int = 400) -> Figures:
    """Not durable at all; stands here because it is what this queue replaces inside."""
    redis = connect(redis_url, connections=20, timeout=5)
    left, done = jobs, asyncio.Event()

    async def noop(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for _ in range(jobs):
        await redis.enqueue_job("noop", _queue_name="bench")
    serial = {"job_serializer": redis.job_serializer, "job_deserializer": redis.job_deserializer}
    worker = Worker(
        [func(noop, name="noop")],  # type: ignore[arg-type]  # arq's protocol wants a dict
        queue_name="bench",
        redis_pool=redis,
        handle_signals=False,
        **serial,  # type: ignore[arg-type]  # both are what they say
    )
    running, began = asyncio.create_task(worker.async_run()), time.perf_counter()
    await done.wait()
    took = time.perf_counter() - began
    running.cancel()
    await asyncio.wait([running, *worker.tasks.values()])
    await redis.aclose(close_connection_pool=True)
    return {"single": round(jobs / took)}


def _summary(medians: dict[str, Figures]) -> dict[str, object]:
    ours = medians["ours"]
    durable = {name: figures["single"] for name, figures in medians.items() if name in _PEERS}
    best = max(durable.values(), default=None)
    pgqueuer = medians.get("pgqueuer")
    return {
        "bench": "queue",
        **ours,
        "single_ratio": round(ours["single"] / best, 2) if best else None,
        "bulk_ratio": round(ours["bulk"] / pgqueuer["bulk"], 2) if pgqueuer else None,
        "peers": {name: figures for name, figures in medians.items() if name != "ours"},
        "left_out": [name for name in _PEERS if name not in medians],
    }


if __name__ == "__main__":
    main()
