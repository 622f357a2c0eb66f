"""Receipts on real servers: sealed by whoever comes, forked by nobody, listed, proven, and checked without a server."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from gateways import signing
from models import receipt as receipts
from models import seal as seals
from models.database import driver
from models.receipt import Receipt
from privacy.receipt_audit import Audit

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


async def write(resources: "Resources", space: int, count: int) -> None:
    for number in range(count):
        async with resources.database.begin(space) as tx:
            await receipts.write(await driver(tx), Receipt(space, "key_test", "test.done", {"n": number}, {"rows": 1}))


async def seal(resources: "Resources", space: int) -> int:
    signer = await signing.load(resources.keys)
    async with resources.database.begin(space) as tx:
        return await seals.seal_next(await driver(tx), space, signer.signature)


async def chain(resources: "Resources", space: int) -> list[dict[str, Any]]:
    async with resources.database.begin(space) as tx:
        return await seals.chain(await driver(tx), space, 0, 10_000)


async def audit(resources: "Resources", space: int, checkpoint: dict[str, Any] | None = None) -> list[str]:
    keys = await signing.public_keys(resources.keys)
    return list(Audit(keys, checkpoint).walk(await chain(resources, space)))


@pytest.fixture
async def key(mint: "Mint") -> "Minted":
    return await mint(scopes=("receipts:read",))


async def test_sixteen_writers_and_two_sequencers_make_one_chain(resources: "Resources", key: "Minted") -> None:
    writers = [asyncio.create_task(write(resources, key.space, 15)) for _ in range(16)]
    sealed = 0
    while not all(task.done() for task in writers):
        sealed += sum(await asyncio.gather(seal(resources, key.space), seal(resources, key.space)))
        assert await audit(resources, key.space) == []
    await asyncio.gather(*writers)
    while count := await seal(resources, key.space):
        sealed += count
    assert sealed == 16 * 15
    assert await audit(resources, key.space) == []


async def test_the_table_itself_refuses_a_fork(resources: "Resources", key: "Minted") -> None:
    await write(resources, key.space, 1)
    await seal(resources, key.space)
    with pytest.raises(asyncpg.UniqueViolationError):
        async with resources.database.begin(key.space) as tx:
            await (await driver(tx)).execute(
                "INSERT INTO seals (space_id, number, previous, hash, size, total, leaves, document, signature, at)"
                " SELECT space_id, number + 1, previous, hash, size, total, leaves, document, signature, at FROM seals"
                " WHERE space_id = $1",
                key.space,
            )


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        ("UPDATE receipts SET actor = 'key_x' WHERE space_id = $1 AND place = 1 AND seal = 2", "was altered or added"),
        ("DELETE FROM receipts WHERE space_id = $1 AND place = 1 AND seal = 2", "the receipt of place 1 is missing"),
        ("UPDATE receipts SET at = at + interval '1 microsecond' WHERE space_id = $1 AND seal = 1", "seal 1: receipt"),
        ("DELETE FROM seals WHERE space_id = $1 AND number = 2", "seal 3: seal 2 was expected here"),
        ("DELETE FROM seals WHERE space_id = $1 AND number = 3", "the tail was cut off"),
        (
            "UPDATE seals SET document = jsonb_set(document, '{total}', '1') WHERE space_id = $1 AND number = 2",
            "seal 2",
        ),
        ("DELETE FROM seals WHERE space_id = $1", "the tail was cut off"),
    ],
)
async def test_what_the_databases_owner_does_is_named(
    resources: "Resources", key: "Minted", attack: str, named: str
) -> None:
    for _ in range(3):
        await write(resources, key.space, 3)
        await seal(resources, key.space)
    async with resources.database.begin(key.space) as tx:
        checkpoint = await seals.checkpoint(await driver(tx), key.space)
    assert await audit(resources, key.space, checkpoint) == []
    async with resources.database.begin(key.space) as tx:
        await (await driver(tx)).execute(attack, key.space)
    assert any(named in finding for finding in await audit(resources, key.space, checkpoint))


async def test_receipts_expire_by_whole_seals_and_the_chain_still_holds(resources: "Resources", key: "Minted") -> None:
    for _ in range(3):
        await write(resources, key.space, 4)
        await seal(resources, key.space)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        before = await connection.fetchval("SELECT at FROM seals WHERE space_id = $1 AND number = 3", key.space)
        assert await seals.expire(connection, key.space, before, 5) == 8
    links = await chain(resources, key.space)
    assert [len(link["receipts"]) for link in links] == [0, 0, 4]
    assert await audit(resources, key.space, links[-1]) == []


async def test_one_signing_key_is_made_however_many_begin_at_once(resources: "Resources") -> None:
    signers = await asyncio.gather(*(signing.load(resources.keys) for _ in range(8)))
    assert len({signer.key_id for signer in signers}) == 1


async def test_receipts_are_listed_and_proven(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted"
) -> None:
    await write(resources, key.space, 5)
    first = (await client.get("/v1/receipts", params={"limit": 3}, headers=key.headers)).json()
    rest = (await client.get("/v1/receipts", params={"after": first["next"]}, headers=key.headers)).json()
    ids = [one["id"] for one in first["receipts"] + rest["receipts"]]
    assert len(set(ids)) == 5
    assert "next" not in rest
    unsealed = await client.get(f"/v1/receipts/{ids[2]}/proof", headers=key.headers)
    assert (unsealed.status_code, unsealed.json()["code"]) == (409, "receipt_not_sealed")
    await seal(resources, key.space)
    proof = (await client.get(f"/v1/receipts/{ids[2]}/proof", headers=key.headers)).json()
    checkpoint = (await client.get("/v1/receipts/checkpoint", headers=key.headers)).json()
    assert proof["receipt"]["id"] == ids[2]
    assert proof["seal"] == checkpoint


async def test_another_spaces_receipt_is_not_there(
    client: "httpx.AsyncClient", resources: "Resources", key: "Minted", mint: "Mint"
) -> None:
    other = await mint(scopes=("receipts:read",))
    await write(resources, other.space, 1)
    await seal(resources, other.space)
    foreign = (await client.get("/v1/receipts", headers=other.headers)).json()["receipts"][0]["id"]
    made_up = f"rct_{'0' * 32}"
    for path in ("/v1/receipts/{}/proof", "/v1/receipts?after={}"):
        answers = [await client.get(path.format(one), headers=key.headers) for one in (foreign, made_up)]
        assert [answer.status_code for answer in answers] == [404, 404]
    assert (await client.get("/v1/receipts", headers=key.headers)).json() == {"receipts": []}
    assert (await client.get("/v1/receipts/checkpoint", headers=key.headers)).status_code == 404


async def test_a_chain_is_checked_from_a_file_alone(
    resources: "Resources", key: "Minted", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cli import __main__ as cli

    await write(resources, key.space, 3)
    await seal(resources, key.space)
    links = await chain(resources, key.space)
    keys = {name: public.hex() for name, public in (await signing.public_keys(resources.keys)).items()}
    file, kept = tmp_path / "chain.jsonl", tmp_path / "checkpoint.json"
    file.write_text("\n".join(json.dumps(line) for line in [{"keys": keys}, *links]))
    kept.write_text(json.dumps(links[-1]))
    told = ["receipts", "verify", "--file", str(file), "--checkpoint", str(kept), "--json"]
    assert cli.run(told) == 0
    assert json.loads(capsys.readouterr().out) == {"valid": True, "seals": 1, "receipts": 3, "found": []}
    file.write_text(file.read_text().replace('"rows": 1', '"rows": 2', 1))
    assert cli.run(told) == 1
    assert "was altered or added" in json.loads(capsys.readouterr().out)["found"][0]
