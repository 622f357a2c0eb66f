"""What the scripted model answers when nobody says otherwise: each turn's unique tokens, as an observation of it."""

import json
import re
from collections.abc import Iterator

from gateways.scripted_behaviour import Asked

# A turn in a prompt's data, as `memory.transcript` writes it: alias, part, mark, speaker, text.
_TURN = re.compile(r"^(?P<alias>\d+)(?:\(\d+/\d+\))?[><=!](?P<text>.*)$", re.MULTILINE)
_TOKEN = re.compile(r"\btok-\w+")


def echo(asked: Asked) -> str:
    """One observation for each turn that carries tokens such as `tok-123`, saying which."""
    return json.dumps({"observations": list(_observations(asked.user))})


def _observations(data: str) -> Iterator[dict[str, object]]:
    for turn in _TURN.finditer(data):
        if found := dict.fromkeys(_TOKEN.findall(turn["text"])):
            yield {
                "text": f"{' '.join(found)} came up",
                "kind": "event",
                "priority": "medium",
                "evidence": [int(turn["alias"])],
                "refers_to": None,
                "replaces": None,
            }
