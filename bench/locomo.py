"""How good is the memory of real chats? A LoCoMo file through the whole pipeline, and its log in the scorer's shape.

    python -m bench.locomo [FILE] [--out LOG.json] [--limit SAMPLES]

The model is whichever AFTERTURN_MEMORY_WORKER_MODEL and AFTERTURN_MODEL_BASE_URL name; without them the built-in one.
"""

import argparse
import os
import re
import time
from collections.abc import Iterable
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import httpx

from bench.report import remark, shared, skip, tell
from bench.scoring import Entry, score, write
from bench.service import run, service, settled
from config.settings import BUILTIN
from intake import files
from intake.files import Conversation
from intake.messages import Message

_AGENT = "locomo"
_WITHIN = 3_600.0  # seconds for the workers, which may wait for a slow model
_GOALS = "kept <= 21, s_session >= 80, s_bm10 >= 65, dates_right >= 88, dates_wrong <= 6, near_duplicates <= 0.5"
_MEMORY = {"AFTERTURN_OBSERVATIONAL_MEMORY": "1", "AFTERTURN_OBSERVER_MAX_AGE": "1d"}


async def observe(file: Path, limit: int | None) -> tuple[dict[str, list[Entry]], dict[str, float]]:
    """The log of each sample, each a person of its own; and how long the workers took."""
    async with service("api", "worker", "scheduler", **_MEMORY) as there:
        headers = {"Authorization": f"Bearer {await there.mint()}"}
        async with httpx.AsyncClient(base_url=there.url, headers=headers, trust_env=False, timeout=60) as http:
            began, samples, turns = time.monotonic(), [], 0
            for sample, chats in islice(groupby(files.conversations(file), _sample), limit):
                samples.append(sample)
                turns += await _post(http, sample, chats)
            posted = time.monotonic() - began
            for sample in samples:
                await _ask(http, sample, "observations/flush")
            took = await settled(there, _WITHIN)
            log = {sample: await _log(http, sample) for sample in samples}
    remark(f"{turns} turns posted in {posted:.1f} s; the workers took {took:.1f} s more")
    return log, {"turns": turns, "seconds_posting": round(posted, 1), "seconds_more": round(took, 1)}


async def _post(http: httpx.AsyncClient, sample: str, chats: Iterable[Conversation]) -> int:
    accepted = 0
    for chat in chats:
        body = {"agent": _AGENT, "conversation_id": chat.id, "turns": [_told(message) for message in chat.messages]}
        answer = await http.post("/v1/turns", json=body, headers={"X-Canonical-User": sample})
        answer.raise_for_status()
        accepted += answer.json()["accepted"]
    return accepted


def _told(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"id": message.id, "role": message.role, "name": message.name, "content": message.text}
    return told if message.said_at is None else told | {"at": message.said_at.isoformat()}


async def _ask(http: httpx.AsyncClient, sample: str, path: str, **more: str) -> dict[str, Any]:
    answer = await http.post(f"/v1/{path}", json={"agent": _AGENT, **more}, headers={"X-Canonical-User": sample})
    answer.raise_for_status()
    document: dict[str, Any] = answer.json()
    return document


async def _log(http: httpx.AsyncClient, sample: str) -> list[Entry]:
    coverage = await _ask(http, sample, "coverage/read")
    if coverage["turns"]["pending"]:
        raise RuntimeError(f"{sample} has turns that are not observed: {coverage['why_not_yet']}")
    lines = (await _ask(http, sample, "observations/read", format="json"))["observations"]
    return [_entry(line) for line in lines]


def _entry(line: dict[str, Any]) -> Entry:
    spoken = line["evidence"]
    return {
        "session": _session(spoken[-1]["conversation_id"]),
        "date": line["observed_at"][:10],
        "text": line["text"],
        "src": [turn["message_id"] for turn in spoken],
    }


def _sample(chat: Conversation) -> str:
    return chat.id.rpartition("/")[0]


def _session(conversation_id: str) -> int:
    number = re.search(r"session_(\d+)", conversation_id)
    if number is None:
        raise ValueError("the file is not LoCoMo's: a chat of it is no session")
    return int(number[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.locomo", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=shared("data", "locomo", "locomo.json"))
    parser.add_argument("--out", type=Path, help="where the log is written")
    parser.add_argument("--limit", type=int, help="samples of the file, from the first; all of them without it")
    asked = parser.parse_args()
    if asked.file is None:
        skip("locomo", "no LoCoMo file was given, and none lies beside the checkout")
        return

    async def bench() -> None:
        log, pace = await observe(asked.file, asked.limit)
        write(asked.out, log)
        model = os.environ.get("AFTERTURN_MEMORY_WORKER_MODEL", BUILTIN)
        tell("locomo", _GOALS, model=model, samples=len(log), **score(asked.file, log), **pace)

    run(bench)


if __name__ == "__main__":
    main()
