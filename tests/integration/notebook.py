"""A space with agent memory on, and its agents, each with a key of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from models.database import driver

ROUTE = "/v1/agent-memory/notes"
STEPS = {
    "kind": "procedure",
    "title": "Show a credit on the invoice",
    "body": "In the ERP the credit shows only after post_credit and refresh_invoice, in that order.",
    "tags": ["invoice", "erp"],
}


def numbered(number: int) -> dict[str, Any]:
    """A note of its own: no other's words are its own."""
    words = ("alpha", "bravo", "delta", "gamma", "kilo", "lima", "metro", "oscar", "tango", "zulu")
    named = " ".join(words[int(digit)] for digit in f"{number:04}")
    return {"kind": "tool_note", "title": f"The endpoint {named}", "body": f"It wants {named} in its header."}


class Notebook:
    """Everything that tests of agent memory ask."""

    def __init__(self, client: Any, resources: Any, mint: Any) -> None:
        self.client, self.resources, self.mint = client, resources, mint
        self.name = f"space-{uuid4().hex}"

    async def open(self, **features: Any) -> "Notebook":
        self.security = await self.mint(self.name, scopes=("security", "operator", "receipts:read"))
        self.space = self.security.space
        self.reviewer = await self.mint(self.name, scopes=("agent_memory:read", "agent_memory:review"), owner="rita")
        await self.features(agent_memory=True, **features)
        return self

    async def features(self, **said: Any) -> None:
        answer = await self.client.put("/v1/features", json=said, headers=self.security.headers)
        assert answer.status_code == 200, answer.text

    async def agent(self, name: str | None, vendor: str | None = None, owner: str | None = None) -> Any:
        key = await self.mint(self.name, ("agent_memory:read", "agent_memory:write"), agent=name, owner=owner)
        await self.resources.database.pool.execute("UPDATE api_keys SET vendor = $2 WHERE id = $1", key.id, vendor)
        return key

    async def ask(self, method: str, path: str, key: Any, body: Any = None, **query: Any) -> Any:
        return await self.client.request(method, path, json=body, headers=key.headers, params=query)

    async def write(self, key: Any, **said: Any) -> Any:
        return await self.ask("POST", ROUTE, key, STEPS | said)

    async def note(self, key: Any, **said: Any) -> str:
        answer = await self.write(key, **said)
        assert answer.status_code == 201, answer.text
        note: str = answer.json()["id"]
        return note

    async def ids(self, key: Any, **query: Any) -> list[str]:
        answer = await self.ask("GET", ROUTE, key, **query)
        assert answer.status_code == 200, answer.text
        return [note["id"] for note in answer.json()["notes"]]

    async def rows(self, query: str, *values: Any) -> Sequence[Any]:
        async with self.resources.database.begin(self.space) as tx:
            return await (await driver(tx)).fetch(query, *values)

    async def receipts(self, action: str) -> list[Mapping[str, Any]]:
        rows = await self.rows(
            "SELECT actor, ids::text AS ids, counts::text AS counts FROM receipts WHERE space_id = $1 AND action = $2"
            " ORDER BY at",
            *(self.space, action),
        )
        return [{"actor": row["actor"], "ids": json.loads(row["ids"]), **json.loads(row["counts"])} for row in rows]

    async def everything(self) -> str:
        """Every row of the space that could hold what was said, as text."""
        tables = ("notes", "note_versions", "proposals", "note_allowances", "receipts", "announcements", "work")
        found = [await self.rows(f"SELECT t::text FROM {table} t WHERE space_id = $1", self.space) for table in tables]  # noqa: S608 - constants
        return "\n".join(row[0] for rows in found for row in rows)
