from typing import TYPE_CHECKING, Any

import pytest

from intake.identity import HEADERS
from models.api_key import Scope

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

OPEN = {"/healthz", "/readyz", "/metrics"}


BY_IDENTITY = {
    "agent-state",
    "turns",
    "conversations",
    "observations",
    "coverage",
    "context",
}  # resources of whom a request speaks for


@pytest.fixture
async def document(client: "httpx.AsyncClient") -> dict[str, Any]:
    answer = await client.get("/openapi.json")
    said: dict[str, Any] = answer.json()
    return said


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, of) for path, methods in document["paths"].items() for method, of in methods.items()]


async def test_every_operation_names_its_scope_and_refusals(document: dict[str, Any]) -> None:
    named = operations(document)
    assert len(named) >= 12
    for path, _, operation in named:
        if path in OPEN:
            assert "security" not in operation
            continue
        ((_, (scope,)),) = operation["security"][0].items()
        assert scope in set(Scope)
        refusals = {status: of for status, of in operation["responses"].items() if status >= "4"}
        assert {"401", "403", "500", "503"} <= refusals.keys()
        for refusal in refusals.values():
            assert refusal["content"].keys() == {"application/problem+json"}
        if "requestBody" in operation:
            assert {"400", "413", "415", "422"} <= refusals.keys()


async def test_each_operation_about_a_person_takes_the_identity_headers(document: dict[str, Any]) -> None:
    for path, _, operation in operations(document):
        headers = {one["name"] for one in operation.get("parameters", []) if one["in"] == "header"}
        about_a_person = path.startswith("/v1/") and path.split("/")[2] in BY_IDENTITY
        assert (headers >= set(HEADERS)) == about_a_person


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(part: Any) -> set[str]:
        if isinstance(part, dict):
            own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
            return own.union(*(references(value) for value in part.values()))
        return set().union(*(references(item) for item in part)) if isinstance(part, list) else set()

    for reference in references(document):
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found


async def test_the_documented_scope_is_the_one_that_opens(
    client: "httpx.AsyncClient", mint: "Mint", document: dict[str, Any]
) -> None:
    for path, method, operation in operations(document):
        if path in OPEN:
            continue
        scope = operation["security"][0]["bearer"][0]
        others = tuple(str(other) for other in Scope if other != scope)
        for scopes, opens in (((scope,), True), (others, False)):
            key = await mint(scopes=scopes)
            answer = await client.request(method, path.replace("{record_id}", "1"), headers=key.headers)
            assert (answer.status_code != 403) == opens, path


async def test_the_document_asks_nobody_else(document: dict[str, Any]) -> None:
    assert "servers" not in document
    assert "http://" not in str(document)
    assert "https://" not in str(document)
