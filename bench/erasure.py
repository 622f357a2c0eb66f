"""What does erasing in batches cost? One person's rows among ten times as many, against plain DELETEs of as many rows.

Two people of the same size: one goes by a DELETE for each table, the other by the job, batch by batch. The scan that
follows reads every table, whoever was erased, so it is told apart.
"""

import argparse
import json
import time
from datetime import timedelta
from uuid import UUID, uuid4

from bench.report import remark, tell
from bench.service import OFFLINE, Service, run, service
from cli import spaces
from jobs import erase
from jobs.letters import erase_letter
from jobs.residue import look
from jobs.resources import furnished
from models import claim as claims
from models import erasing as erasures
from models import work
from models.claim import Rung, Terms
from models.database import Connection, driver
from models.dataset import Target
from models.work import Added, Claim

_PER_LOG, _TURNS_A_LINE = 50_000, 5

_FILL = (
    "INSERT INTO subjects (id, space_id) VALUES ($2, $1)",
    """
    INSERT INTO logs (space_id, subject_id, agent, context, last_seq, observed_through)
    SELECT $1, $2, 'agent-' || n, 'corporate', $4::bigint, $4 FROM generate_series(1, $3::int) AS n
    """,
    "INSERT INTO generations (log_id, number, space_id, made_by) SELECT id, 1, $1, 'observe' FROM logs WHERE subject_id = $2",
    """
    INSERT INTO conversations (space_id, subject_id, digest, sealed_id, agent)
    SELECT $1, $2, decode(md5(subject_id || agent), 'hex'), decode(repeat('01', 60), 'hex'), agent FROM logs WHERE subject_id = $2
    """,
    """
    INSERT INTO turns (space_id, log_id, seq, conversation_id, subject_id, role, sealed, tokens, said_at, said_offset,
                       state, generation, message_digest)
    SELECT $1, l.id, n, c.id, $2, 'user', decode('01' || repeat(md5(n::text), 12), 'hex'), 40, now(), 0, 'observed', 1,
           decode(md5(l.id || ' ' || n), 'hex')
    FROM logs l JOIN conversations c ON c.subject_id = l.subject_id AND c.agent = l.agent
    CROSS JOIN generate_series(1, $3::int) AS n WHERE l.subject_id = $2
    """,
    """
    INSERT INTO observations (space_id, log_id, subject_id, generation, sealed, digest, kind, priority, tokens,
                              observed_at, observed_offset, evidence, sources, born_at)
    SELECT $1, id, $2, 1, decode('01' || repeat(md5(n::text), 8), 'hex'), decode(md5(n::text), 'hex'), 'fact', 'low', 20,
           now(), 0, ARRAY[n::bigint], '{}', now()
    FROM logs CROSS JOIN generate_series(1, $3::int) AS n WHERE subject_id = $2
    """,
)

_PLAIN = (
    "DELETE FROM observations WHERE log_id IN (SELECT id FROM logs WHERE subject_id = $1)",
    "DELETE FROM turns WHERE log_id IN (SELECT id FROM logs WHERE subject_id = $1)",
    "DELETE FROM generations WHERE log_id IN (SELECT id FROM logs WHERE subject_id = $1)",
    "DELETE FROM conversations WHERE subject_id = $1",
    "DELETE FROM logs WHERE subject_id = $1",
    "DELETE FROM subjects WHERE id = $1",
)


async def measure(rows: int, people: int) -> dict[str, object]:
    """Both ways in one deployment."""
    async with service(**OFFLINE) as there:
        space = (await spaces.find_or_make(there.resources.database, there.resources.keys, spaces.DEFAULT)).id
        began = time.monotonic()
        everybody = [await person(there, space, rows) for _ in range(people)]
        await there.resources.database.pool.execute("VACUUM ANALYZE", timeout=1800)
        remark(f"{people} people of {rows} rows took {time.monotonic() - began:.0f} s to make")
        plain = await _plainly(there, space, everybody[0])
        job, target = await _by_the_job(there, space, everybody[len(everybody) // 2])
        began = time.perf_counter()
        left = await look(there.resources, target)
        scan = time.perf_counter() - began
        assert set(left.found) <= {"keys"}, left.found  # nobody here has a key
    return {
        "rows": rows,
        "among": rows * people,
        "seconds_plain": round(plain, 2),
        "seconds_job": round(job, 2),
        "seconds_scan": round(scan, 2),
        "ratio": round(job / plain, 2),
        "ratio_with_scan": round((job + scan) / plain, 2),
    }


async def person(there: Service, space: int, rows: int) -> UUID:
    """Somebody with so many turns and lines, in logs of a few ten thousand."""
    subject, logs = uuid4(), max(1, rows // _PER_LOG)
    turns = rows * _TURNS_A_LINE // (_TURNS_A_LINE + 1) // logs
    lines = turns // _TURNS_A_LINE
    async with there.resources.database.begin(space) as tx:
        connection = await driver(tx)
        for statement, numbers in zip(_FILL, ((), (logs, turns), (), (), (turns,), (lines,)), strict=True):
            await connection.execute(statement, space, subject, *numbers, timeout=1800)
    return subject


async def _plainly(there: Service, space: int, subject: UUID) -> float:
    began = time.perf_counter()
    for statement in _PLAIN:
        async with there.resources.database.begin(space) as tx:
            await (await driver(tx)).execute(statement, subject, timeout=1800)
    return time.perf_counter() - began


async def _by_the_job(there: Service, space: int, subject: UUID) -> tuple[float, Target]:
    """What the job does between acceptance and its scan."""
    async with furnished(there.resources) as workshop:
        claim = await _accepted(there, space, subject)  # the fence apart: its deletes are the job's here
        async with there.resources.database.begin(space) as tx:
            erasing = await erasures.find(await driver(tx), space, UUID(claim.payload["erasure"]))
        assert erasing is not None
        began = time.perf_counter()
        await erase.delete(claim, erasing, workshop)
        return time.perf_counter() - began, erasing.target


async def _accepted(there: Service, space: int, subject: UUID) -> Claim:
    added = await due(there, space, subject)
    terms = Terms("bench", "interactive", ("erase_subject",), timedelta(hours=1), 100)
    async with there.resources.database.pool.acquire() as connection:
        (claim,) = await claims.rung(connection, terms, [Rung(added.id, added.epoch)], 1)
    return claim


async def due(there: Service, space: int, subject: UUID) -> Added:
    """Makes a person's erasure due, as its acceptance does, the fence apart."""
    erasure = uuid4()
    async with there.resources.database.begin(space) as tx:
        connection = await driver(tx)
        target = await _target(connection, subject)
        await connection.execute(
            "INSERT INTO erasures (id, space_id, kind, target, reason_code, actor, state)"
            " VALUES ($1, $2, 'subject', $3::text::jsonb, 'other', 'bench', 'accepted')",
            *(erasure, space, json.dumps(target)),
        )
        added = await work.add(connection, erase_letter(space, erasure))
    assert added is not None
    return added


async def _target(connection: Connection, subject: UUID) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {"subjects": [str(subject)]}
    for part in ("logs", "conversations"):
        rows = await connection.fetch(f"SELECT id FROM {part} WHERE subject_id = $1", subject)  # noqa: S608 - constants
        found[part] = [row["id"] for row in rows]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.erasure", description=__doc__)
    parser.add_argument("--long", action="store_true", help="a million rows among ten million")
    rows = 1_000_000 if parser.parse_args().long else 100_000

    async def bench() -> None:
        tell("erasure", "ratio <= 2", **await measure(rows, 10))

    run(bench)


if __name__ == "__main__":
    main()
