"""A note: what an agent learned about its work. How two notes are the same, and how alike they are."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from memory import search

LONGEST_TITLE, LONGEST_BODY, MOST_TAGS, LONGEST_TAG = 120, 2_000, 8, 60  # characters, but for the tags

_ALIKE = 0.6  # share of two notes' words that both have
_MOST_ALIKE = 5


class NoteKind(StrEnum):
    """What sort of thing was learned."""

    PROCEDURE = "procedure"  # how to do something
    TOOL_NOTE = "tool_note"  # how a tool behaves
    PROCESS_NOTE = "process_note"  # how a company process works
    PITFALL = "pitfall"  # what goes wrong


class Visibility(StrEnum):
    """Who reads a note."""

    SOURCE = "source"  # the agent alone
    VENDOR = "vendor"  # every agent of its vendor
    SPACE = "space"  # every agent of the space, once a reviewer said so


@dataclass(frozen=True, slots=True)
class Draft:
    """What a note says."""

    kind: NoteKind
    title: str
    body: str
    tags: tuple[str, ...] = ()
    visibility: Visibility = Visibility.SOURCE

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything of it that somebody wrote."""
        return (self.title, self.body, *self.tags)

    def digest(self) -> bytes:
        """Equal for notes that say the same in the same words, whatever their case, accents and punctuation."""
        said = "\n".join(" ".join(search.terms(text)) for text in (self.title, self.body))
        return hashlib.sha256(said.encode()).digest()


def folded_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in lower case, each once, in their order."""
    return tuple(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))


def alike(draft: Draft, others: Mapping[UUID, tuple[str, str]]) -> list[UUID]:
    """The ids, of `others` (title and body by id), whose words are for the most part the draft's; the likest first."""
    words = _words(draft.title, draft.body)
    shares = {name: _share(words, _words(*texts)) for name, texts in others.items()}
    near = [name for name, share in shares.items() if share >= _ALIKE]
    return sorted(near, key=lambda name: (-shares[name], name))[:_MOST_ALIKE]


def _words(title: str, body: str) -> frozenset[str]:
    return frozenset(search.terms(f"{title}\n{body}"))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
