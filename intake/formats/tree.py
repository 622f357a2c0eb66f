"""Chats with branches: which messages led to where the chat stands, and how many did not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Node:
    """One place in a tree of messages. `message` is None where the place holds none."""

    parent: str | None
    message: Mapping[str, Any] | None
    said_at: datetime | None


def main_branch(nodes: Mapping[str, Node], current: str | None) -> tuple[list[Mapping[str, Any]], int]:
    """The messages from the root to `current`, and how many lie elsewhere. Where `current` is not among the nodes, the
    branch is the one that was spoken last, then the longest."""
    if current not in nodes:
        current = _last_leaf(nodes)
    path = [message for node in reversed(list(_upwards(nodes, current))) if (message := node.message) is not None]
    return path, sum(node.message is not None for node in nodes.values()) - len(path)


def _upwards(nodes: Mapping[str, Node], current: str | None) -> Iterator[Node]:
    seen: set[str] = set()
    while current is not None and current in nodes and current not in seen:
        seen.add(current)
        yield nodes[current]
        current = nodes[current].parent


def _last_leaf(nodes: Mapping[str, Node]) -> str | None:
    inner = {node.parent for node in nodes.values()}
    ends = _ends(nodes)
    leaves = [key for key in nodes if key not in inner]
    # Of equals the last in the file; a file of circles has no leaf at all.
    return max(reversed(leaves), key=ends.__getitem__, default=next(iter(nodes), None))


def _ends(nodes: Mapping[str, Node]) -> dict[str, tuple[datetime, int]]:
    """For each node the latest time on its way up, and the length of that way. Each node is looked at once."""
    ends: dict[str, tuple[datetime, int]] = {}
    for start in nodes:
        way: list[str] = []
        current: str | None = start
        while current is not None and current in nodes and current not in ends:
            ends[current] = (_NEVER, 0)  # until it is known; it also ends a circle
            way.append(current)
            current = nodes[current].parent
        latest, length = ends.get(current, (_NEVER, 0)) if current is not None else (_NEVER, 0)
        for key in reversed(way):
            latest, length = max(latest, nodes[key].said_at or _NEVER), length + 1
            ends[key] = latest, length
    return ends
