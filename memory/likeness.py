"""Which lines of a log are about the same matter, by the words that they share."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from memory import search
from memory.observation import Line, Rewritten

_RARE = 4  # of a line's words, those by which its like are looked up


class Standing:
    """The lines that stay so far: old ones by their id, new ones too."""

    def __init__(self, lines: Iterable[Line], merged: Iterable[Rewritten]) -> None:
        self._lines: dict[int, Line | Rewritten] = {line.id: line for line in lines}
        self._replaced: dict[int, set[int]] = defaultdict(set)
        for line in self._lines.values():
            if isinstance(line, Line) and line.supersedes is not None:
                self._replaced[line.supersedes].add(line.id)
        self._lines |= {-place: line for place, line in enumerate(merged, 1)}
        self._words = {key: frozenset(search.terms(line.text)) for key, line in self._lines.items()}
        self._holding: dict[str, set[int]] = defaultdict(set)
        for key, words in self._words.items():
            for word in words:
                self._holding[word].add(key)

    def remove(self, key: int) -> None:
        """Take out the old line of this id."""
        del self._lines[key]
        for word in self._words.pop(key):
            self._holding[word].discard(key)

    def like(self, line: Line, share: float) -> Iterator[Line | Rewritten]:
        """The other lines that hold at least `share` of this old line's words."""
        words = self._words[line.id]
        rare = sorted(words, key=lambda word: (len(self._holding[word]), word))[: max(_RARE, len(words) // 2)]
        for key in sorted({key for word in rare for key in self._holding[word]} - {line.id}):
            if len(words & self._words[key]) >= share * len(words):
                yield self._lines[key]

    def replaced(self, key: int) -> bool:
        """Whether a line that stands says that it replaces this one."""
        return any(newer in self._lines for newer in self._replaced[key])
