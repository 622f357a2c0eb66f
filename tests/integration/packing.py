"""Exports driven by hand: asked for over the API, run step by step, fetched and unpacked."""

import contextlib
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from api.app import create_app
from config.settings import Packages, Settings
from gateways.package_store import open_store
from jobs.export import expire_export, export_subject
from jobs.resources import Resources, Workshop, furnished
from jobs.verdict import Verdict
from models import claim as claims
from models import release
from models.claim import Crowded, Rung, Terms
from models.database import driver
from models.work import Claim

SCOPES = ("turns:write", "memory:read", "operator")
_JOBS = {"export_subject": export_subject, "expire_export": expire_export}
_CLASSES = {"export_subject": "interactive", "expire_export": "housekeeping"}


@dataclass(slots=True)
class Counter:
    """Where packages are handed out: a space of its own with one person in it, `ana`, and a folder or bucket."""

    client: httpx.AsyncClient
    resources: Resources
    workshop: Workshop
    key: Any

    @property
    def space(self) -> int:
        return int(self.key.space)

    @property
    def store(self) -> Any:
        return self.resources.packages

    async def say(self, *texts: str, conversation: str = "c-1", agent: str = "support") -> None:
        for first in range(0, len(texts), 500):
            turns = [{"role": "user", "content": text} for text in texts[first : first + 500]]
            told = {"agent": agent, "conversation_id": conversation, "turns": turns}
            answer = await self.client.post("/v1/turns", json=told, headers=self.key.headers)
            assert answer.status_code == 202, answer.text

    async def ask(self, handle: str = "ana", **headers: str) -> str:
        answer = await self.try_asking(handle, **headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def try_asking(self, handle: str, **headers: str) -> httpx.Response:
        body = {"subject": {"handle_kind": "owner", "handle": handle}, "format": "zip"}
        return await self.client.post("/v1/exports", json=body, headers={**self.key.headers, **headers})

    async def look(self, export: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/exports/{export}", headers=self.key.headers)
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def claim(self, export: str, kind: str = "export_subject") -> Claim:
        pool = self.resources.database.pool
        row = await pool.fetchrow(
            "UPDATE work SET run_at = least(run_at, now()) WHERE scope = $1 AND kind = $2 AND state = 'ready'"
            " RETURNING id, epoch",
            *(f"export:{export.removeprefix('exp_')}", kind),
        )
        assert row is not None, f"no {kind} waits"
        terms = Terms("test", _CLASSES[kind], (kind,), timedelta(seconds=60), 100)
        while True:  # as a worker does that comes while another is claiming
            async with pool.acquire() as connection:
                with contextlib.suppress(Crowded):
                    (claim,) = await claims.rung(connection, terms, [Rung(row["id"], row["epoch"])], 1)
                    return claim

    async def run(self, export: str, kind: str = "export_subject") -> Verdict:
        return await _JOBS[kind](await self.claim(export, kind), self.workshop)

    async def crash(self, claim: Claim) -> None:
        """The worker that holds the claim is dead, and somebody notices."""
        pool = self.resources.database.pool
        await pool.execute("UPDATE work SET claimed_until = now() - interval '1 second' WHERE id = $1", claim.id)
        async with pool.acquire() as connection:
            await release.recover_expired(connection, {})

    async def try_fetching(self, export: str) -> httpx.Response:
        return await self.client.get(f"/v1/exports/{export}/package", headers=self.key.headers)

    async def fetch(self, export: str) -> zipfile.ZipFile:
        answer = await self.try_fetching(export)
        assert answer.status_code == 200, answer.text
        assert int(answer.headers["content-length"]) == len(answer.content)
        return zipfile.ZipFile(io.BytesIO(answer.content))

    async def make(self) -> tuple[str, zipfile.ZipFile]:
        export = await self.ask()
        await self.run(export)
        return export, await self.fetch(export)

    async def files(self) -> list[str]:
        """All that lies in the store for the person, finished or not."""
        found: list[str] = await self.store.files(str(self.space))
        return found

    async def erase_person(self) -> None:
        """As an erasure's acceptance does: the rows that everything else goes by are gone."""
        await self.write("DELETE FROM subjects WHERE space_id = $1 AND id = $2", self.space, self.key.owner)

    async def write(self, statement: str, *arguments: Any) -> None:
        async with self.resources.database.begin(self.space) as tx:
            await (await driver(tx)).execute(statement, *arguments)

    async def receipts(self, action: str) -> list[Any]:
        async with self.resources.database.begin(self.space) as tx:
            query = (
                "SELECT actor, ids::text, counts::text FROM receipts WHERE space_id = $1 AND action = $2 ORDER BY at"
            )
            return await (await driver(tx)).fetch(query, self.space, action)


@asynccontextmanager
async def counter(
    settings: Settings, resources: Resources, mint: Any, serving: Any, url: str
) -> AsyncIterator[Counter]:
    """A counter whose packages lie behind `url`."""
    async with AsyncExitStack() as stack:
        packages = Packages(packages_url=SecretStr(url))
        place = packages.place()
        assert place is not None
        here = settings.model_copy(update={"packages": packages})
        mine = replace(resources, settings=here, packages=open_store(place))
        client = await stack.enter_async_context(serving(create_app(here)))
        workshop = await stack.enter_async_context(furnished(mine))
        yield Counter(client, mine, workshop, await mint(scopes=SCOPES, owner="ana"))


def folder(path: Path) -> str:
    return path.as_uri()


def lines(package: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in package.read(name).decode().splitlines()]
