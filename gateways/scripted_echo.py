"""What the scripted model answers when nobody says otherwise: the unique tokens that it finds, such as `tok-123`."""

import json
import re
from collections.abc import Iterator

from gateways.scripted_behaviour import Asked

# A turn in the data of `memory.observer`: alias, part, mark, speaker, text. A line in that of `memory.reflector`: alias,
# mark, dates, text, under its day.
_TURN = re.compile(r"^(?P<alias>\d+)(?:\(\d+/\d+\))?[><=!](?P<text>.*)$", re.MULTILINE)
_LINE = re.compile(r"^(?P<alias>\d+)[!.-](?:\[[^\]]*\])? (?P<text>.*)$", re.MULTILINE)
_DAY = re.compile(r"^@", re.MULTILINE)
_TOKEN = re.compile(r"\btok-\w+")
_MERGED = 20  # lines that go into one


def echo(asked: Asked) -> str:
    """Asked about turns, one observation for each that carries tokens, saying which; asked about a log, its lines merged."""
    if "\n# Turns" in f"\n{asked.user}":
        return json.dumps({"observations": list(_observations(asked.user))})
    return json.dumps({"changes": list(_changes(asked.user))})


def _observations(data: str) -> Iterator[dict[str, object]]:
    for turn in _TURN.finditer(data):
        if found := _TOKEN.findall(turn["text"]):
            yield {
                "text": _came_up(found),
                "kind": "event",
                "priority": "medium",
                "evidence": [int(turn["alias"])],
                "refers_to": None,
                "replaces": None,
            }


def _changes(data: str) -> Iterator[dict[str, object]]:
    """The lines of a day that carry tokens and nothing else that counts, merged without losing one."""
    for day in _DAY.split(data):
        lines = [line for line in _LINE.finditer(day) if _TOKEN.search(line["text"])]
        for start in range(0, len(lines), _MERGED):
            group = lines[start : start + _MERGED]
            if len(group) > 1:
                found = [token for line in group for token in _TOKEN.findall(line["text"])]
                yield {"from": [int(line["alias"]) for line in group], "text": _came_up(found), "why": None}


def _came_up(tokens: list[str]) -> str:
    return f"{' '.join(dict.fromkeys(tokens))} came up"
