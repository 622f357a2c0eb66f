"""What operators watch of governance: receipts without a seal, rows past their term, erasures that take long."""

from typing import TYPE_CHECKING
from uuid import uuid4

from api.meters import Meters, Reader
from cli.status import _document, taken
from models.database import driver

if TYPE_CHECKING:
    import httpx
    from conftest import Mint

    from jobs.resources import Resources

DAY = 86_400


async def value(reader: Reader, name: str) -> float:
    reader._fresh_until = 0.0
    await reader.read()
    lines = reader.meters.written().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"afterturn_{name} "))


async def test_governance_says_what_waits_and_for_how_long(
    client: "httpx.AsyncClient", resources: "Resources", mint: "Mint"
) -> None:
    key = await mint(scopes=("turns:write", "operator"))
    reader = Reader(resources.database, Meters())
    body = {"agent": "support", "conversation_id": "c1", "turns": [{"role": "user", "content": "hello"}]}
    await client.post("/v1/turns", json=body, headers=key.headers)
    async with resources.database.begin(key.space) as tx:
        connection = await driver(tx)
        # Longer ago than anything that other tests leave behind.
        await connection.execute(
            "UPDATE turns SET created_at = now() - interval '4000 days' WHERE space_id = $1", key.space
        )
        await connection.execute(
            "INSERT INTO receipts (id, space_id, at, actor, action, ids, counts)"
            " VALUES ($1, $2, now() - interval '3000 days', 'test', 'test.done', '{}', '{}')",
            *(uuid4(), key.space),
        )
        await connection.execute(
            "INSERT INTO erasures (id, space_id, kind, target, reason_code, actor, accepted_at)"
            " VALUES ($1, $2, 'agent', '{}', 'other', 'test', now() - interval '2000 days')",
            *(uuid4(), key.space),
        )
    assert await value(reader, "expired_oldest_seconds") < 3_000 * DAY
    await client.put("/v1/policies/retention", json={"turns": "30d"}, headers=key.headers)
    assert round(await value(reader, "expired_oldest_seconds") / DAY) == 3_970
    assert round(await value(reader, "receipts_unsealed_oldest_seconds") / DAY) == 3_000
    assert round(await value(reader, "erasures_oldest_seconds") / DAY) == 2_000
    assert await value(reader, "receipts_unsealed") >= 2
    assert await value(reader, "erasures_in_progress") >= 1
    # What is held stays, and alarms nobody.
    assert (await client.put(f"/v1/holds/sub_{key.owner.hex}", headers=key.headers)).status_code == 200
    assert await value(reader, "expired_oldest_seconds") < 3_000 * DAY
    standing = _document(await taken(resources))
    assert (standing["erasures"], standing["erasing_for_seconds"]) > (0, 1_999 * DAY)
    async with resources.database.begin(key.space) as tx:  # other tests look over all spaces as well
        connection = await driver(tx)
        await connection.execute("DELETE FROM erasures WHERE space_id = $1", key.space)
        await connection.execute("DELETE FROM receipts WHERE space_id = $1", key.space)
