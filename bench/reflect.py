"""How well does a log shrink? Three accounts of the same facts as one log, rewritten by the worker.

    python -m bench.reflect [UNION.json] [--out LOG.json] [--share 0.7 ...] [--limit SAMPLES]

Each share is the threshold that forces the rewrite, as a part of the log's tokens; the log that is written is that of
the first share. The model is chosen as for bench.locomo.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
from sqlmodel import col, select

from bench.report import remark, shared, skip, tell
from bench.scoring import Entry, score, tool, write
from bench.service import Service, run, service, settled
from config.settings import BUILTIN
from jobs.letters import reflect_letter
from memory import tokens
from memory.checks import normalise
from memory.observation import Draft, Kind, Priority
from models import log as logs
from models import observation, work
from models.content import line_digest, open_line, seal_line
from models.database import driver
from models.log import Log
from models.observation import Observation
from privacy.sealing import SealingKey

_AGENT = "reflect"
_WITHIN = 3_600.0  # seconds for the worker, which may wait for a slow model
_SHARES = (0.7,)
_GOALS = "kept <= 25 at s_session >= 75"
_MEMORY = {"AFTERTURN_OBSERVATIONAL_MEMORY": "1", "AFTERTURN_OBSERVER_MAX_AGE": "1d"}


async def reflect(union: Mapping[str, Sequence[Entry]], shares: Sequence[float]) -> dict[float, dict[str, list[Entry]]]:
    """What is left of each sample's log, by share of its tokens."""
    async with service("api", "scheduler", **_MEMORY) as there:
        secret = await there.mint()
        return {
            share: {
                sample: await _one(there, secret, f"{sample}@{share}", said, share) for sample, said in union.items()
            }
            for share in shares
        }


async def _one(there: Service, secret: str, person: str, said: Sequence[Entry], share: float) -> list[Entry]:
    filled = await _fill(there, await _someone(there, secret, person), said)
    # A worker of its own, since the threshold is a setting of the process.
    await there.start("worker", AFTERTURN_REFLECTOR_THRESHOLD=str(int(share * filled.live_tokens)))
    try:
        await settled(there, _WITHIN)
    finally:
        await there.stop("worker")
    left = await _left(there, filled)
    remark(f"{person}: {len(said)} lines of {filled.live_tokens} tokens became {len(left)}")
    return left


async def _someone(there: Service, secret: str, person: str) -> Log:
    """A person's log, made by one turn that is never observed."""
    body = {"agent": _AGENT, "conversation_id": "1", "no_memory": True, "turns": [{"role": "user", "content": "Hello"}]}
    headers = {"Authorization": f"Bearer {secret}", "X-Canonical-User": person}
    async with httpx.AsyncClient(base_url=there.url, headers=headers, trust_env=False) as http:
        (await http.post("/v1/turns", json=body)).raise_for_status()
    async with there.resources.database.begin_everywhere() as tx:
        return (await tx.execute(select(Log).order_by(col(Log.id).desc()).limit(1))).scalar_one()


async def _fill(there: Service, found: Log, said: Sequence[Entry]) -> Log:
    """The log with these lines in it, and a reflection of it due. A line that says the same again is left out."""
    key = await there.resources.keys.key(found.subject_id)
    async with there.resources.database.begin(found.space_id) as tx:
        log = await logs.lock(tx, found.space_id, found.id)
        if log is None:
            raise LookupError("the log went away")
        await observation.append(
            tx, list({row.digest: row for row in (_row(log, key, entry) for entry in said)}.values())
        )
        log.live_tokens = await observation.live_tokens(tx, log.id, log.generation)
        await work.add_many(await driver(tx), [(reflect_letter(log.space_id, log.id), None)])
        return log


def _row(log: Log, key: SealingKey, entry: Entry) -> Observation:
    noon = datetime.combine(date.fromisoformat(entry["date"]), time(12), UTC)
    draft = Draft(entry["text"], Kind.ATTRIBUTE, Priority.MEDIUM, noon, evidence=(entry["session"],))
    return Observation(
        space_id=log.space_id,
        log_id=log.id,
        subject_id=log.subject_id,
        generation=log.generation,
        sealed=seal_line(key, draft),
        digest=line_digest(key, normalise(draft.text), None),
        kind=draft.kind,
        priority=draft.priority,
        tokens=tokens.count(draft.text),
        observed_at=noon,
        observed_offset=0,
        evidence=list(draft.evidence),  # the session, in place of turns: a rewrite carries it along
        sources=[],
        born_at=noon,
    )


async def _left(there: Service, filled: Log) -> list[Entry]:
    key = await there.resources.keys.key(filled.subject_id)
    async with there.resources.database.begin(filled.space_id) as tx:
        log = await logs.by_id(tx, filled.space_id, filled.id)
        rows = [] if log is None else await observation.of_generation(tx, log.id, log.generation)
    if log is None or log.generation == filled.generation:
        raise RuntimeError(f"the log was not rewritten: {'gone' if log is None else log.last_error}")
    lines = [open_line(row, key) for row in rows]
    return [
        {"session": max(line.evidence), "date": line.observed_at.date().isoformat(), "text": line.text}
        for line in lines
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.reflect", description=__doc__)
    parser.add_argument("union", type=Path, nargs="?", help="made by tools/locomo_union.py; made here without it")
    parser.add_argument("--out", type=Path, help="where the log is written")
    parser.add_argument("--share", type=float, action="append", help="of the log's tokens: the threshold; repeatable")
    parser.add_argument("--limit", type=int, help="samples of the file, from the first; all of them without it")
    asked = parser.parse_args()
    source = shared("data", "locomo", "locomo.json")
    union = _union(asked.union, source)
    if union is None:
        skip("reflect", "no union was given, and there is nothing beside the checkout to make it of")
        return
    chosen = dict(islice(union.items(), asked.limit))

    async def bench() -> None:
        shares = asked.share or _SHARES
        left = await reflect(chosen, shares)
        write(asked.out, left[shares[0]])
        figures = {f"at_{share}": {} if source is None else score(source, log) for share, log in left.items()}
        model = os.environ.get("AFTERTURN_MEMORY_WORKER_MODEL", BUILTIN)
        before = {} if source is None else score(source, chosen)
        tell("reflect", _GOALS, model=model, samples=len(chosen), before=before, **figures)

    run(bench)


def _union(given: Path | None, source: Path | None) -> dict[str, list[Entry]] | None:
    if given is not None:
        union: dict[str, list[Entry]] = json.loads(given.read_text(encoding="utf-8"))
        return union
    maker = tool("locomo_union")
    if maker is None or source is None:
        return None
    return {sample["id"]: list(_told(maker, sample)) for sample in maker.load(str(source))}


def _told(maker: ModuleType, sample: Mapping[str, Any]) -> Iterator[Entry]:
    days = sample["sessions"]
    said = [(session, text) for session, text in maker.union(sample) if session in days]
    for session, text in sorted(said, key=lambda one: one[0]):
        yield {"session": session, "date": days[session].isoformat(), "text": text}


if __name__ == "__main__":
    main()
