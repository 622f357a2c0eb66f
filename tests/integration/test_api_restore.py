import asyncio
from typing import TYPE_CHECKING, Any

from sqlmodel import col, select

from models import log as logs
from models import observation
from models.observation import Generation, Observation

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted, Remember

    from jobs.resources import Resources

SCOPES = ("memory:read", "operator")


async def rewrite(resources: "Resources", key: "Minted", *kept: int) -> None:
    """A reflection that keeps some lines as they are and drops the rest."""
    async with resources.database.begin(key.space) as tx:
        found = await logs.find(tx, key.space, key.owner, "support", "corporate")
        assert found is not None
        log = await logs.lock(tx, key.space, found.id)
        assert log is not None
        old = [row for row in await observation.of_generation(tx, log.id, log.generation) if row.id in kept]
        await observation.begin_generation(tx, log, "reflect")
        await observation.append(tx, [observation.carried(row, log.generation) for row in old])
        log.live_tokens = await observation.live_tokens(tx, log.id, log.generation)
        log.failed_reflection = "some input"


async def restore(client: "httpx.AsyncClient", key: "Minted", generation: Any) -> "httpx.Response":
    ask = {"agent": "support", "generation": generation}
    return await client.post("/v1/observations/restore", json=ask, headers=key.headers)


async def texts(client: "httpx.AsyncClient", key: "Minted") -> list[str]:
    ask = {"agent": "support", "format": "json"}
    read = (await client.post("/v1/observations/read", json=ask, headers=key.headers)).json()
    return [line["text"] for line in read["observations"]]


async def test_an_earlier_generation_comes_back_with_what_was_observed_since(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    first, _ = await remember(key, "kept", "dropped by the rewrite")
    await rewrite(resources, key, first)
    await remember(key, "observed since")
    assert sorted(await texts(client, key)) == ["kept", "observed since"]
    answer = await restore(client, key, 1)
    assert (answer.status_code, answer.json()["generation"]) == (200, 3)
    assert sorted(await texts(client, key)) == ["dropped by the rewrite", "kept", "observed since"]
    async with resources.database.begin(key.space) as tx:
        log = await logs.find(tx, key.space, key.owner, "support", "corporate")
        assert log is not None
        assert log.live_tokens == await observation.live_tokens(tx, log.id, 3) > 0
        assert log.failed_reflection is None
        made = (await tx.execute(select(Generation.made_by).order_by(col(Generation.number)))).scalars().all()
    assert made == ["observe", "reflect", "restore"]


async def test_the_generation_before_can_be_restored_too_and_nothing_comes_twice(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    first, _ = await remember(key, "kept", "dropped")
    await rewrite(resources, key, first)
    await remember(key, "since the rewrite")
    await restore(client, key, 1)
    await remember(key, "since the restore")
    assert (await restore(client, key, 2)).json()["generation"] == 4
    assert sorted(await texts(client, key)) == ["kept", "since the restore", "since the rewrite"]
    assert (await restore(client, key, 1)).json()["generation"] == 5
    assert sorted(await texts(client, key)) == ["dropped", "kept", "since the restore", "since the rewrite"]


async def test_a_restored_line_keeps_its_age_its_evidence_and_its_correction(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    (old,) = await remember(key, "Ana lives in Porto.")
    await rewrite(resources, key, old)
    async with resources.database.begin(key.space) as tx:
        rewritten = (await tx.execute(select(Observation).where(col(Observation.generation) == 2))).scalar_one()
    await remember(key, "Ana lives in Braga.", supersedes=rewritten.id)
    await restore(client, key, 1)
    async with resources.database.begin(key.space) as tx:
        rows = (await tx.execute(select(Observation).order_by(col(Observation.id)))).scalars().all()
    original, copy = rows[0], rows[-2]
    assert copy.sources == [original.id]
    assert (copy.born_at, copy.evidence, copy.observed_at) == (
        original.born_at,
        original.evidence,
        original.observed_at,
    )
    assert rows[-1].supersedes == copy.id


async def test_what_cannot_be_restored_is_refused_and_changes_nothing(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember"
) -> None:
    key = await mint(scopes=SCOPES)
    assert (await restore(client, key, 1)).status_code == 404
    await remember(key, "a line")
    live = await restore(client, key, 1)
    assert (live.status_code, live.json()["code"]) == (409, "generation_is_live")
    assert (await restore(client, key, 2)).status_code == 404
    for wrong in (0, -1, "1", 2**64, None):
        assert (await restore(client, key, wrong)).status_code == 422
    assert await texts(client, key) == ["a line"]


async def test_another_persons_generations_are_not_found(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    ana, eve = await mint("restorers", SCOPES, owner="ana"), await mint("restorers", SCOPES, owner="eve")
    (line,) = await remember(ana, "a line")
    await rewrite(resources, ana, line)
    assert (await restore(client, eve, 1)).status_code == 404


async def test_two_restores_at_once_make_two_generations_in_turn(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    first, _ = await remember(key, "kept", "dropped")
    await rewrite(resources, key, first)
    answers = await asyncio.gather(restore(client, key, 1), restore(client, key, 1))
    assert sorted(answer.json()["generation"] for answer in answers) == [3, 4]
    assert sorted(await texts(client, key)) == ["dropped", "kept"]


async def test_a_log_as_long_as_the_reflector_allows_comes_back_whole(
    client: "httpx.AsyncClient", mint: "Mint", remember: "Remember", resources: "Resources"
) -> None:
    key = await mint(scopes=SCOPES)
    for start in range(0, 2_000, 500):
        await remember(key, *(f"line {number}" for number in range(start, start + 500)))
    await rewrite(resources, key)
    assert (await restore(client, key, 1)).status_code == 200
    assert len(await texts(client, key)) == 2_000
