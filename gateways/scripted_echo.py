"""What the scripted model answers when nobody says otherwise: each turn's unique tokens, as an observation of it."""

import json
import re

from gateways.scripted_behaviour import Asked

_TOKEN = re.compile(r"\btok-\d+\b")
_ALIAS = re.compile(r"\d+")


def echo(asked: Asked) -> str:
    """One observation for each line of the prompt's data that carries a token such as `tok-123`."""
    return json.dumps({"observations": [_observation(line) for line in asked.user.splitlines() if _TOKEN.search(line)]})


def _observation(line: str) -> dict[str, object]:
    alias = _ALIAS.search(line)
    text = "The user mentioned " + " ".join(dict.fromkeys(_TOKEN.findall(line)))
    return {
        "text": text,
        "kind": "event",
        "priority": "medium",
        "evidence": [int(alias.group())] if alias else [],
    }
