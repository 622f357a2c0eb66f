"""Notes found by the words that they hold, by PostgreSQL's full text."""

from collections.abc import Sequence

from memory import search
from memory.note import Draft
from models.database import Connection
from models.note import COLUMNS, NEWEST, READABLE, Reader, Written, parameters, seen

_MOST_WORDS = 400  # of one query
_LONGEST_WORD = 2_046  # bytes: PostgreSQL indexes no longer one, and refuses a query that has it

_FOUND = f"""
SELECT {COLUMNS}, ts_rank(v.search, $4::tsquery) AS score FROM {NEWEST}
WHERE n.space_id = $1 AND {READABLE} AND n.status = 'active' AND v.search @@ $4::tsquery
    AND (cardinality($5::text[]) = 0 OR v.tags && $5)
ORDER BY score DESC, n.created_at, n.id LIMIT $6
"""  # noqa: S608 - constants


async def found(
    connection: Connection, reader: Reader, query: str, tags: Sequence[str], most: int
) -> list[tuple[Written, float]]:
    """The active notes, of those that the reader may read, that hold words of a query, best first."""
    words = any_of(search.terms(query), beginnings=True)
    if not words:
        return []
    rows = await connection.fetch(_FOUND, *parameters(reader), words, list(tags), most)
    return [(seen(row), row["score"]) for row in rows]


_SHARING = f"""
SELECT {COLUMNS} FROM {NEWEST} WHERE n.space_id = $1 AND {READABLE} AND n.status = 'active'
    AND v.search @@ $4::tsquery ORDER BY ts_rank(v.search, $4::tsquery) DESC, n.id LIMIT $5
"""  # noqa: S608 - constants


async def sharing_words(connection: Connection, reader: Reader, draft: Draft, most: int) -> list[Written]:
    """The active notes, of those that the reader may read, that share most words with a draft."""
    query = any_of([*search.terms(draft.title), *search.terms(draft.body)])
    if not query:
        return []
    return [seen(row) for row in await connection.fetch(_SHARING, *parameters(reader), query, most)]


def any_of(terms: Sequence[str], *, beginnings: bool = False) -> str:
    """A tsquery for texts that hold one of these words, or one that begins so; empty where there is none."""
    words = [term for term in dict.fromkeys(terms) if len(term.encode()) <= _LONGEST_WORD]
    quoted = [f"'{term}'" for term in words if "'" not in term and "\\" not in term]
    ends = ":*" if beginnings else ""
    return " | ".join(f"{term}{ends}" for term in quoted[:_MOST_WORDS])
