"""Receipts on real servers: sealed by whoever comes, forked by nobody, listed, proven, and checked without a server."""

import asyncio
import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest

from gateways import signing
from models import receipt as receipts
from models import seal as seals
from models.database import driver
from models.receipt import Receipt
from privacy.handover import trust
from privacy.receipt_audit import Audit

if TYPE_CHECKING:
    import httpx
    from conftest import Mint, Minted

    from jobs.resources import Resources


ROOT = Path(__file__).parents[2]


async def write(resources: "Resources", space: int, count: int) -> None:
    for number in range(count):
        async with resources.database.begin(space) as tx:
            await receipts.write(await driver(tx), Receipt(space, "key_test", "test.done", {"n": number}, {"rows": 1}))


async def seal(resources: "Resources", space: int) -> int:
    signer = await signing.load(resources.keys)
    async with resources.database.begin(space) as tx:
        return await seals.seal_next(await driver(tx), space, signer)


async def chain(resources: "Resources", space: int) -> list[dict[str, Any]]:
    async with resources.database.begin(space) as tx:
        connection, links, number = await driver(tx), list[dict[str, Any]](), 0
        while more := await seals.chain(connection, space, number, 1_000_000):
            links, number = links + more, more[-1]["number"]
        return links


async def audit(resources: "Resources", space: int, checkpoint: dict[str, Any] | None = None) -> list[str]:
    links = await chain(resources, space)
    keys, handovers = await signing.public_keys(resources.keys), await signing.handovers(resources.keys)
    return list(Audit(trust(keys, handovers), checkpoint).walk(links))


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
        (
            (
                "WITH gone AS (DELETE FROM receipts WHERE space_id = $1 AND seal = 1)"
                " UPDATE seals SET expired = true WHERE space_id = $1 AND number = 1"
            ),
            "seal 1: the receipt of place 0 is missing",
        ),
        (
            (
                "INSERT INTO receipts SELECT gen_random_uuid(), space_id, at, actor, action, ids, counts, seal, 99"
                " FROM receipts WHERE space_id = $1 AND seal = 2 AND place = 0"
            ),
            "was altered or added",
        ),
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


async def test_a_receipt_that_claims_a_seal_which_is_not_there_is_named(resources: "Resources", key: "Minted") -> None:
    await write(resources, key.space, 1)
    await seal(resources, key.space)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        assert await seals.strays(connection, key.space) == []
        added = await connection.fetchval(
            "INSERT INTO receipts SELECT gen_random_uuid(), space_id, at, actor, action, ids, counts, 99, 0"
            " FROM receipts WHERE space_id = $1 RETURNING id",
            key.space,
        )
        assert await seals.strays(connection, key.space) == [receipts.opaque(added)]


async def test_who_owns_the_database_cannot_write_the_chain_anew(resources: "Resources", key: "Minted") -> None:
    for _ in range(2):
        await write(resources, key.space, 3)
        await seal(resources, key.space)
    forger = signing._signer((await signing.load(resources.keys)).id, bytes(32), ())  # the right name, not the key
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        await connection.execute("DELETE FROM seals WHERE space_id = $1", key.space)
        await connection.execute("UPDATE receipts SET seal = NULL, actor = 'key_x' WHERE space_id = $1", key.space)
        await seals.seal_next(connection, key.space, forger)
    assert await audit(resources, key.space) == ["seal 1: its signature was not made by a known key"]


async def test_a_clock_that_went_back_raises_no_alarm(resources: "Resources", key: "Minted") -> None:
    for hours in (0, 5, 2):
        await write(resources, key.space, 2)
        async with resources.database.begin(key.space) as tx:
            await (await driver(tx)).execute(
                "UPDATE receipts SET at = at - make_interval(hours => $2) WHERE space_id = $1 AND seal IS NULL",
                *(key.space, hours),
            )
        await seal(resources, key.space)
    assert await audit(resources, key.space) == []


async def test_receipts_expire_by_whole_seals_and_the_chain_still_holds(resources: "Resources", key: "Minted") -> None:
    for _ in range(3):
        await write(resources, key.space, 4)
        await seal(resources, key.space)
    signer = await signing.load(resources.keys)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        before = await connection.fetchval("SELECT at FROM seals WHERE space_id = $1 AND number = 3", key.space)
        assert await seals.expire(connection, key.space, before, 4, signer) == 4
        assert await seals.expire(connection, key.space, before, 5, signer) == 4
        assert await seals.expire(connection, key.space, before, 5, signer) == 0
    links = await chain(resources, key.space)
    assert [len(link["receipts"]) for link in links] == [0, 0, 4]
    assert await audit(resources, key.space, links[-1]) == []


async def test_seals_past_a_receipts_term_stay_whole_until_they_are_swept(
    resources: "Resources", key: "Minted"
) -> None:
    await write(resources, key.space, 3)
    await seal(resources, key.space)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        first = await connection.fetchrow("SELECT id, at FROM receipts WHERE space_id = $1 ORDER BY at", key.space)
        await connection.execute(
            "INSERT INTO retention (space_id, data_set, floor) VALUES ($1, 'receipts', $2)", key.space, first["at"]
        )
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        assert len(await receipts.listed(connection, key.space, None, None, 10) or []) == 2
        assert await seals.proof(connection, key.space, first["id"]) is None
    assert await audit(resources, key.space) == []
    last = (await chain(resources, key.space))[0]["receipts"][2]["id"]
    async with resources.database.begin(key.space) as tx:
        proof = await seals.proof(await driver(tx), key.space, UUID(last.removeprefix("rct_")))
    assert proof is not None
    assert (proof["index"], proof["size"]) == (2, 3)


async def test_a_receipt_that_could_never_be_sealed_is_not_written(resources: "Resources", key: "Minted") -> None:
    with pytest.raises(ValueError, match="2"):
        async with resources.database.begin(key.space) as tx:
            await receipts.write(await driver(tx), Receipt(key.space, "key_test", "test.done", {"n": 2**53 + 1}))


async def test_a_new_key_takes_over_and_the_old_one_seals_no_more(resources: "Resources", key: "Minted") -> None:
    await write(resources, key.space, 2)
    await seal(resources, key.space)
    old = await signing.load(resources.keys)
    news = await asyncio.gather(signing.rotate(resources.keys), signing.rotate(resources.keys))
    now = await signing.load(resources.keys)
    assert {one.key_id for one in news} == {now.key_id} != {old.key_id}
    await write(resources, key.space, 2)
    await seal(resources, key.space)
    links = await chain(resources, key.space)
    told = [one for one in links[1]["receipts"] if one["action"] == "signing_key.rotated"]
    assert told[0]["ids"]["from"] == old.key_id
    assert await audit(resources, key.space, links[0]) == []
    only_old = trust({old.key_id: old.public}, await signing.handovers(resources.keys))
    assert list(Audit(only_old, links[0]).walk(links)) == []
    await write(resources, key.space, 1)
    with pytest.raises(seals.Outdated):
        async with resources.database.begin(key.space) as tx:
            await seals.seal_next(await driver(tx), key.space, old)


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
    none = await client.get("/v1/receipts", params={"action": "nothing.of_that_name"}, headers=key.headers)
    assert none.json() == {"receipts": []}
    unkeepable = await client.get("/v1/receipts", params={"action": "key.minted\0"}, headers=key.headers)
    assert (unkeepable.status_code, unkeepable.json()["errors"][0]["path"]) == (422, "query.action")
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


async def test_a_chain_is_checked_by_a_program_that_needs_nothing_else(
    resources: "Resources", key: "Minted", tmp_path: Path
) -> None:
    await write(resources, key.space, 3)
    await seal(resources, key.space)
    file, kept, links = tmp_path / "chain.jsonl", tmp_path / "kept.json", await chain(resources, key.space)
    keys, handovers = await signing.public_keys(resources.keys), await signing.handovers(resources.keys)
    head = {"keys": {name: public.hex() for name, public in keys.items()}, "handovers": handovers, "strays": []}
    file.write_text("\n".join(json.dumps(line) for line in [head, *links]))
    kept.write_text(json.dumps(links[-1]))
    public = (await signing.load(resources.keys)).public.hex()
    told = ("--file", str(file), "--checkpoint", str(kept), "--public-key", public, "--json")
    assert await verified(*told) == (0, {"valid": True, "seals": 1, "receipts": 3, "found": []})
    answered = tmp_path / "key.txt"  # what /v1/receipts/key answers, as it came
    answered.write_text(json.dumps({"key": b64encode(bytes.fromhex(public)).decode(), "algorithm": "Ed25519"}))
    by_file = ("--file", str(file), "--checkpoint", str(kept), "--public-key", str(answered), "--json")
    assert (await verified(*by_file))[0] == 0
    file.write_text(file.read_text().replace('"rows": 1', '"rows": 2', 1))
    code, answer = await verified(*told)
    assert code == 1
    assert "was altered or added" in answer["found"][0]
    assert (await verified("--file", str(file), "--public-key", bytes(32).hex(), "--json"))[0] == 1
    assert (await verified("--file", str(kept)))[0] == 2


async def verified(*arguments: str) -> tuple[int, Any]:
    """The verifier in a process without any settings; it must not even load what could reach a server."""
    program = (
        "import sys; from cli.verify import main; code = main(sys.argv[1:]);"
        " assert not {'asyncpg', 'sqlalchemy', 'redis', 'httpx', 'config', 'models'} & set(sys.modules); sys.exit(code)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *arguments), stdout=asyncio.subprocess.PIPE, cwd=ROOT, env={}
    )
    out, _ = await process.communicate()
    return process.returncode or 0, json.loads(out) if out else None
