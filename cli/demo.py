"""`afterturn demo`: a deployment of its own, four days of one person's chat, what is remembered, and its end."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources as packaged
from pathlib import Path
from typing import Any

import httpx

from cli import demo_story, keys
from cli.demo_story import Remembered
from cli.failure import Failed
from cli.output import answer, remark
from cli.running import Running, running
from cli.verify import check_certificate
from config.settings import BUILTIN
from jobs.resources import opened

Say = Callable[[Iterable[str]], None]

_WITHIN = 30.0  # seconds for the workers
_PAUSE = 0.05  # seconds between looks at the coverage
_BUDGET = 300  # tokens of the next prompt
_PERSON = "client-1041"

# Low, so that one short chat shows what otherwise takes a long one.
_ENVIRONMENT = {
    "AFTERTURN_OBSERVATIONAL_MEMORY": "1",
    "AFTERTURN_MEMORY_WORKER_MODEL": BUILTIN,
    "AFTERTURN_OBSERVER_THRESHOLD": "150",
    "AFTERTURN_REFLECTOR_THRESHOLD": "230",
    "AFTERTURN_SWEEP_EVERY": "1s",
}


def run(*, as_json: bool) -> None:
    """Shows it all, step by step as it happens, and leaves nothing behind."""
    os.environ.update(_ENVIRONMENT)
    with _temporary() as folder:
        try:
            asyncio.run(_run(folder, as_json=as_json))
        except asyncio.CancelledError:
            raise Failed("the demo was stopped") from None


async def _run(folder: Path, *, as_json: bool) -> None:
    me = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, lambda: me and me.cancel())
    say: Say = (lambda _: None) if as_json else (lambda lines: answer(None, lines, as_json=False))
    say(demo_story.beginning())
    began, log = time.monotonic(), folder / "log"
    try:
        with log.open("wb") as written:
            async with running(folder, 0, written) as there:
                say(demo_story.started(there.servers.url, time.monotonic() - began))
                document = await _show(there, say)
    except Failed:
        _show_troubles(log)
        raise
    if as_json:
        answer(document, (), as_json=True)


async def _show(there: Running, say: Say) -> dict[str, Any]:
    async with opened(there.settings) as stores:
        chats = await keys.mint(stores, keys.Wanted("default", "demo", "turns:write,memory:read", owner=_PERSON))
        operates = await keys.mint(stores, keys.Wanted("default", "operator", "operator"))
    async with _client(there, chats.secret) as client, _client(there, operates.secret) as operator:
        told = await _remember(Chat(client, _sample()[0]["agent"], there.settings.memory.reflector_threshold), say)
        told |= await _govern(operator, say)
    say(demo_story.farewell())
    return {"url": there.servers.url, **told}


def _client(there: Running, secret: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.AsyncClient(base_url=there.servers.url, headers=headers, trust_env=False)


async def _remember(chat: "Chat", say: Say) -> dict[str, Any]:
    *days, last = _sample()
    for day in days:
        await chat.post("/v1/turns", day)
    say(demo_story.posted(days))
    before = await chat.remembered()
    say(demo_story.observed(before))
    await chat.post("/v1/turns", last)
    after = await chat.remembered()
    say(demo_story.reflected(last, before, after))
    parts = (await chat.post("/v1/context", _next_prompt(last)))["parts"]
    say(demo_story.prompt(parts))
    return {
        "turns": after.coverage["turns"],
        "generation": after.generation,
        "tokens": after.tokens,
        "observations": after.lines,
        "context": parts,
    }


async def _govern(operator: httpx.AsyncClient, say: Say) -> dict[str, Any]:
    """What an operator does when she asks for all that is held about her, and then to be forgotten."""
    subject = {"handle_kind": "owner", "handle": _PERSON}
    package = await _asked(operator, "/v1/exports", {"subject": subject}, until="ready")
    say(demo_story.exported(package))
    wish = {"subject": subject, "reason_code": "subject_request"}
    erasure = await _asked(operator, "/v1/erasures", wish, until="completed")
    certificate = await _answered(operator, "GET", f"/v1/erasures/{erasure['id']}/certificate")
    flaws = check_certificate(certificate, None)
    say(demo_story.erased(certificate["document"], flaws))
    return {"export": package, "certificate": certificate, "flaws": flaws}


async def _asked(operator: httpx.AsyncClient, path: str, wish: Mapping[str, Any], until: str) -> dict[str, Any]:
    """Asks for something that takes a worker, and answers it once it is done."""
    asked = await _answered(operator, "POST", path, wish)
    deadline = time.monotonic() + _WITHIN
    while (found := await _answered(operator, "GET", f"{path}/{asked['id']}"))["state"] != until:
        await _pause(deadline, f"{path} is {found['state']} still")
    return found


async def _answered(
    client: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """One call of the API; Failed when it is refused."""
    reply = await client.request(method, path, json=body)
    if not reply.is_success:
        raise Failed(f"{method} {path} was answered {reply.status_code}")
    answered: dict[str, Any] = reply.json()
    return answered


@dataclass(frozen=True, slots=True)
class Chat:
    """What a chat server does: it posts turns, and asks what is remembered. `threshold` is the reflector's."""

    client: httpx.AsyncClient
    agent: str
    threshold: int

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """One call of the API; Failed when it is refused."""
        return await _answered(self.client, "POST", path, body)

    async def remembered(self) -> Remembered:
        """Asks for all that waits to be observed, and what the log is once the workers have come to an end."""
        mine = {"agent": self.agent}
        await self.post("/v1/observations/flush", mine)
        deadline = time.monotonic() + _WITHIN
        while (coverage := await self.post("/v1/coverage/read", mine))["turns"]["pending"]:
            await _pause(deadline, f"turns are pending still: {coverage['why_not_yet']}")
        largest = 0
        while (log := await self._log())["tokens"] > self.threshold:
            largest = max(largest, len(log["observations"]))
            await _pause(deadline, "the log is too long still, and nobody rewrites it")
        return Remembered(coverage, log["generation"], log["tokens"], log["observations"], largest)

    async def _log(self) -> dict[str, Any]:
        return await self.post("/v1/observations/read", {"agent": self.agent, "format": "json"})


async def _pause(deadline: float, why: str) -> None:
    if time.monotonic() > deadline:
        raise Failed(f"the workers have not come to an end within {_WITHIN:g} s: {why}")
    await asyncio.sleep(_PAUSE)


def _sample() -> list[dict[str, Any]]:
    text = (packaged.files("cli") / "sample" / "studio.json").read_text(encoding="utf-8")
    days: list[dict[str, Any]] = json.loads(text)
    return days


def _next_prompt(day: Mapping[str, Any]) -> dict[str, Any]:
    return {"agent": day["agent"], "conversation_id": day["conversation_id"], "token_budget": _BUDGET}


def _show_troubles(log: Path) -> None:
    for line in log.read_text(errors="replace").splitlines()[-5:]:
        remark(line)


@contextmanager
def _temporary() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="afterturn-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
