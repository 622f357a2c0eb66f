"""What a space's retention document names: each data set, how old a row of it is, and which rows are past their term.

A data set takes part by an entry here, by a policy `live` on its table, and by its own way to expire.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from config import duration
from models.hold import UNHELD, UNHELD_LOG


@dataclass(frozen=True, slots=True)
class Kept:
    """`past` is true of rows that a sweep would take; the space is $1. `default` None: for ever.

    `age` is the column, at the end of an index by space, by which a sweep finds out that there is something to do; None:
    that would cost too much, and it looks once an hour.
    """

    table: str
    past: str
    age: str | None = None
    default: timedelta | None = None
    shortest: timedelta = timedelta(seconds=1)
    says: str = ""

    def term(self, value: object) -> timedelta | None:
        """A term as people write it, None for `forever`; ValueError says what it takes."""
        term = None if value == "forever" else duration.parse(value)
        if term is not None and term < self.shortest:
            raise ValueError(f"takes {written(self.shortest)} or longer, or forever")
        return term


def written(term: timedelta | None) -> str:
    """A term as `Kept.term` reads it."""
    if term is None:
        return "forever"
    seconds = int(term.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _by(column: str, data_set: str) -> str:
    return f"{column} <= (SELECT horizon($1, '{data_set}'))"


_OLD_GENERATION = f"{_by('g.created_at', 'generations')} AND l.generation <> g.number"
_LINES = f"""
    {UNHELD} AND ({_by("born_at", "observations")}
        OR EXISTS (SELECT FROM generations g JOIN logs l ON l.id = g.log_id
            WHERE g.log_id = t.log_id AND g.number = t.generation AND {_OLD_GENERATION})
        OR (SELECT with_source FROM retention WHERE space_id = $1 AND data_set = 'observations')
            AND NOT EXISTS (SELECT FROM turns e WHERE e.id = ANY (t.evidence)
                AND e.created_at > (SELECT horizon($1, 'turns'))))
"""  # noqa: S608 - constants
_GENERATIONS = f"""
    {UNHELD_LOG} AND EXISTS (SELECT FROM generations g JOIN logs l ON l.id = g.log_id
        WHERE g.log_id = t.log_id AND g.number = t.number AND {_OLD_GENERATION})
"""
_PACKAGES = "state = 'ready' AND expires_at <= now()"
_WORK = f"{_by('finished_at', 'job_records')} AND state <> 'dead'"
_RECEIPTS = f"""
    EXISTS (SELECT FROM seals s WHERE s.space_id = $1 AND s.number = t.seal AND {_by("s.at", "receipts")})
"""
_NOTES = f"""
    {_by("retired_at", "notes")} OR EXISTS (
        SELECT FROM notes n WHERE n.id = t.note_id AND {_by("n.retired_at", "notes")})
"""

KEPT: Mapping[str, Kept] = {
    "turns": Kept("turns", f"{UNHELD} AND {UNHELD_LOG} AND {_by('created_at', 'turns')}", "created_at"),
    "observations": Kept("observations", _LINES, "born_at"),
    "generations": Kept("generations", _GENERATIONS, says="The live one of a log always stays."),
    "notes": Kept("note_versions", _NOTES, "retired_at", says="Of agents: versions that were replaced or retired."),
    "packages": Kept("exports", _PACKAGES, default=timedelta(days=7), says="Of exports; 7d unless it is named."),
    "job_records": Kept("work", _WORK, default=timedelta(days=30), says="Of finished work; 30d unless it is named."),
    "model_usage": Kept("model_usage", _by("created_at", "model_usage"), "created_at"),
    "receipts": Kept("receipts", _RECEIPTS, shortest=timedelta(days=365), says="By whole seals; 365d or longer."),
}
