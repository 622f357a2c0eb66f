"""The books of a space: each accepted turn in exactly one state, each observed word in exactly one line of its own log.

The scripted model notes the unique words of the turns that it is asked about, so all of this is counted, not judged.
The rows are read with plain SQL, beside the code that is audited. Problems are told by ids and by words that were made
up for the purpose.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asyncpg import Record

from gateways.key_store import KeyStore
from models.database import Database

_WORD = re.compile(r"\btok-\w+")
_STATES = frozenset({"pending", "observed", "skipped", "quarantined"})
_LINES = """
SELECT o.id, o.log_id, o.subject_id, o.sealed, o.tokens, o.evidence
FROM observations o JOIN logs l ON l.id = o.log_id AND l.generation = o.generation WHERE o.space_id = $1
"""


@dataclass(frozen=True, slots=True)
class Books:
    """What a space holds. `said` and `noted` are the words of each turn and of each line of a live generation, by id."""

    logs: Mapping[int, Record]
    turns: Sequence[Record]
    lines: Sequence[Record]
    quarantined: Counter[int]
    work: Sequence[Record]
    said: Mapping[int, Sequence[str]]
    noted: Mapping[int, Sequence[str]]

    @property
    def states(self) -> Counter[str]:
        return Counter(turn["state"] for turn in self.turns)

    def live_generation(self, owner: UUID) -> int:
        """Of somebody's only log; 0 without one."""
        return max((log["generation"] for log in self.logs.values() if log["subject_id"] == owner), default=0)


@dataclass(slots=True)
class Auditor:
    """Opens the books of one space; nothing may be written meanwhile."""

    database: Database
    keys: KeyStore
    space: int
    _words: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    async def books(self) -> Books:
        async with self.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(self.space))

            async def rows(query: str) -> Any:
                return await connection.fetch(query, self.space)

            logs = await rows("SELECT * FROM logs WHERE space_id = $1")
            turns = await rows("SELECT * FROM turns WHERE space_id = $1")
            lines = await rows(_LINES)
            held = await rows("SELECT turn_id FROM quarantine WHERE space_id = $1 AND released_at IS NULL")
            work = await rows("SELECT * FROM work WHERE space_id = $1 AND state IN ('ready', 'claimed', 'dead')")
        return Books(
            logs={log["id"]: log for log in logs},
            turns=turns,
            lines=lines,
            quarantined=Counter(one["turn_id"] for one in held),
            work=work,
            said=await self._opened("turn", turns),
            noted=await self._opened("observation", lines),
        )

    async def _opened(self, purpose: str, rows: Sequence[Record]) -> dict[int, list[str]]:
        """The words of each row, which never change."""
        new = [row for row in rows if (purpose, row["id"]) not in self._words]
        keyring = await self.keys.keys(list({row["subject_id"] for row in new}))
        for row in new:
            text = json.loads(keyring[row["subject_id"]].open(row["sealed"], purpose))["text"]
            self._words[purpose, row["id"]] = _WORD.findall(text)
        return {row["id"]: self._words[purpose, row["id"]] for row in rows}


def problems(books: Books, accepted: Mapping[str, UUID]) -> list[str]:
    """What is wrong, or nothing. `accepted` says whose each word is; every one of them was promised to be kept."""
    return [
        *_stored_once(books, accepted),
        *_one_state(books),
        *_counted(books),
        *_noted_once(books),
        *_nobody_elses(books, accepted),
        *_worked_on(books),
    ]


def _stored_once(books: Books, accepted: Mapping[str, UUID]) -> Iterator[str]:
    stored = Counter(word for words in books.said.values() for word in words)
    for word in accepted:
        if stored[word] != 1:
            yield f"{word} was accepted and is stored {stored[word]} times"


def _one_state(books: Books) -> Iterator[str]:
    for turn in books.turns:
        number, state = turn["id"], turn["state"]
        passed = turn["seq"] <= books.logs[turn["log_id"]]["observed_through"]
        if state not in _STATES:
            yield f"turn {number} is in state {state}"
        if state in {"observed", "quarantined"} and not passed:
            yield f"turn {number} is {state}, and its log's cursor has not come to it"
        if state == "pending" and passed:
            yield f"turn {number} is pending, and its log's cursor has passed it"
        if books.quarantined[number] != (state == "quarantined"):
            yield f"turn {number} is {state}, with {books.quarantined[number]} records in quarantine"


def _counted(books: Books) -> Iterator[str]:
    pending: dict[int, list[int]] = defaultdict(list)
    live: Counter[int] = Counter()
    for turn in books.turns:
        if turn["state"] == "pending":
            pending[turn["log_id"]].append(turn["tokens"])
    for line in books.lines:
        live[line["log_id"]] += line["tokens"]
    for number, log in books.logs.items():
        rows = (len(pending[number]), sum(pending[number]), live[number])
        counters = (log["pending_turns"], log["pending_tokens"], log["live_tokens"])
        if rows != counters:
            yield f"log {number} counts {counters}, and its rows are {rows}"
        if (log["oldest_pending_at"] is None) != (not pending[number]):
            yield f"log {number} has {rows[0]} pending turns, the oldest since {log['oldest_pending_at']}"


def _noted_once(books: Books) -> Iterator[str]:
    noted = Counter(word for words in books.noted.values() for word in words)
    where = {word: line for line in books.lines for word in books.noted[line["id"]]}
    for turn in books.turns:
        expected = 1 if turn["state"] == "observed" else 0
        for word in books.said[turn["id"]]:
            if noted[word] != expected:
                yield f"{word} of turn {turn['id']}, {turn['state']}, is noted {noted[word]} times"
            elif expected and (where[word]["log_id"], True) != (turn["log_id"], turn["id"] in where[word]["evidence"]):
                yield f"{word} of turn {turn['id']} is noted in line {where[word]['id']}, which does not cite it"


def _nobody_elses(books: Books, accepted: Mapping[str, UUID]) -> Iterator[str]:
    for line in books.lines:
        owner = books.logs[line["log_id"]]["subject_id"]
        others = [word for word in books.noted[line["id"]] if accepted.get(word, owner) != owner]
        if others or line["subject_id"] != owner:
            yield f"line {line['id']} of log {line['log_id']} holds {others}, which is another's"


def _worked_on(books: Books) -> Iterator[str]:
    attended = {work["scope"] for work in books.work if work["state"] == "claimed"}
    attended |= {work["scope"] for work in books.work if work["state"] == "ready" and work["kind"] == "observe"}
    for number, log in books.logs.items():
        if log["pending_turns"] and f"log:{number}" not in attended:
            yield f"log {number} waits, and nobody will come for it"
    for work in books.work:
        if work["state"] == "dead":
            yield f"work {work['id']} is dead: {work['last_error']}"
