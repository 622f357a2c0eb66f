"""An agent's notes as text for a prompt: the same bytes for the same notes, whoever the customer is.

The order is that of tags, revisions and age; no model and no recency of use has a say in it, so that a provider's prompt
cache keeps working.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory import tokens
from memory.fence import one_line
from memory.note import Draft

OPENING, CLOSING = "<agent-memory>", "</agent-memory>"
_HEADING = "From the agent itself: working notes, not customer data."
# Every note begins with "- " and is one line, so none is a heading; and none can spell a marker.
_MARKER = re.compile(r"[<＜﹤‹](?=\W{0,9}agent\W{0,3}memory)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A note on its way into a block, by its opaque id; `tokens` are its row's, as `cost` counted them."""

    id: str
    draft: Draft
    version: int
    created_at: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class Block:
    """Ready text between markers, its tokens, and the notes that are in it; of no note, no text."""

    text: str
    tokens: int
    notes: tuple[str, ...]


def cost(draft: Draft) -> int:
    """The tokens of a note's row. Counting is dear, so it is done once, when the note is written."""
    return tokens.count(f"{_row(draft)}\n")


def block(notes: Sequence[Entry], budget: int, tags: Collection[str] = ()) -> Block:
    """As much of the notes as fits `budget` tokens, markers and all: a note that does not fit whole is left out.

    First those that have one of `tags` (in lower case), then the most revised, then the oldest.
    """
    return _packed(sorted(notes, key=_rank(tags)), budget)


def section(notes: Sequence[Entry], budget: int, tags: Collection[str]) -> Block:
    """As `block`, of the notes alone that have one of `tags`."""
    return block([note for note in notes if not set(tags).isdisjoint(note.draft.tags)], budget, tags)


def _rank(tags: Collection[str]) -> Callable[[Entry], tuple[object, ...]]:
    wanted = set(tags)
    return lambda note: (wanted.isdisjoint(note.draft.tags), -note.version, note.created_at, note.id)


def _packed(notes: Sequence[Entry], budget: int) -> Block:
    """Tokens add up, since each row ends in a line break; what the whole comes to is counted all the same."""
    left = budget - tokens.count(_text(()))
    chosen: list[tuple[Entry, str]] = []
    for note in notes:
        if note.tokens <= left:
            left -= note.tokens
            chosen.append((note, _row(note.draft)))
    while chosen and tokens.count(_text([row for _, row in chosen])) > budget:
        chosen.pop()
    if not chosen:
        return Block("", 0, ())
    text = _text([row for _, row in chosen])
    return Block(text, tokens.count(text), tuple(note.id for note, _ in chosen))


def _text(rows: Sequence[str]) -> str:
    return "\n".join([OPENING, _HEADING, *rows, CLOSING])


def _row(draft: Draft) -> str:
    tags = f" [{', '.join(draft.tags)}]" if draft.tags else ""
    said = f"{draft.kind.replace('_', ' ')}: {draft.title}. {draft.body}{tags}"
    return f"- {_MARKER.sub('(', one_line(said, ' '))}"
