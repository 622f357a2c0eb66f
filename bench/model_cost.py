"""How dear is remembering? Tokens sent to the model for each token of the turns that it observed, at the default threshold.

The turns come in over HTTP, the real worker asks, and a scripted model server answers and keeps what it was sent.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

from bench import talk
from bench.report import remark, shared, tell
from bench.service import Service, run, service, settled
from gateways.scripted_behaviour import Asked
from gateways.scripted_model import scripted
from intake import files
from memory import tokens

_A_CALL = 50
_MODEL = {"AFTERTURN_OBSERVATIONAL_MEMORY": "1", "AFTERTURN_MEMORY_WORKER_MODEL": "scripted"}
_AT_THE_DEFAULT = {"AFTERTURN_OBSERVER_THRESHOLD": "8000", "AFTERTURN_OBSERVER_MAX_AGE": "1d"}


async def measure(logs: int, turns: int) -> dict[str, object]:
    """The ratio on invented short turns, and on real chats where they lie beside the checkout."""
    figures = await _ratio("turns", [list(islice(talk.sentences(log), turns)) for log in range(logs)])
    chats = shared("data", "locomo", "locomo.json")
    if chats is not None:
        figures |= await _ratio("real_chats", list(_spoken(chats))[:logs])
    return figures


async def _ratio(name: str, chats: list[list[str]]) -> dict[str, object]:
    async with (
        scripted("good") as model,
        service("api", "worker", "scheduler", **_MODEL, **_AT_THE_DEFAULT, AFTERTURN_MODEL_BASE_URL=model.url) as there,
    ):
        await _post(there, chats)
        await settled(there, 120)
        observed = await _observed_tokens(there)
    sent, schemas = _sent(model.asked), sum(tokens.count(_schema(asked)) for asked in model.asked)
    remark(f"{name}: {len(model.asked)} questions about {observed} tokens of turns")
    return {
        f"ratio_{name}": round(sent / observed, 3),
        f"ratio_{name}_with_schema": round((sent + schemas) / observed, 3),
        f"tokens_observed_{name}": observed,
        f"questions_{name}": len(model.asked),
    }


async def _post(there: Service, chats: list[list[str]]) -> None:
    headers = {"Authorization": f"Bearer {await there.mint()}"}
    async with httpx.AsyncClient(base_url=there.url, headers=headers, trust_env=False, timeout=60) as http:
        for log, said in enumerate(chats):
            for first in range(0, len(said), _A_CALL):
                body = talk.body(f"chat-{first // 200}", f"{log}-{first}", said[first : first + _A_CALL])
                who = {"X-Canonical-User": f"person-{log}", "Content-Type": "application/json"}
                (await http.post("/v1/turns", content=body, headers=who)).raise_for_status()


async def _observed_tokens(there: Service) -> int:
    async with there.resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
        return int(await connection.fetchval("SELECT sum(tokens) FROM turns WHERE state = 'observed'"))


def _sent(asked: Iterable[Asked]) -> int:
    return sum(tokens.count(str(message["content"])) for one in asked for message in one.body["messages"])


def _schema(asked: Asked) -> str:
    # Some servers count it as a part of the prompt.
    return json.dumps(asked.body.get("response_format", ""))


def _spoken(path: Path) -> Iterator[list[str]]:
    """What each pair of friends says, all its sessions together."""
    chats: dict[str, list[Any]] = {}
    for chat in files.conversations(path):
        chats.setdefault(chat.id.rpartition("/")[0], []).extend(message.text for message in chat.messages)
    yield from chats.values()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.model_cost", description=__doc__)
    parser.add_argument("--long", action="store_true", help="more logs")
    logs = 16 if parser.parse_args().long else 3

    async def bench() -> None:
        tell("model_cost", "ratio <= 1.25", **await measure(logs, 1_000))

    run(bench)


if __name__ == "__main__":
    main()
