"""Exports against what goes wrong: erasures before, meanwhile and after, runs that die, break, or come too late."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from jobs import export as exporting
from jobs.verdict import Done, Later, Nothing
from models import export_package as exports
from models import hold
from models.database import driver
from models.dataset import Target
from models.export_data import EXPORTS
from models.work import Claim
from recall import export as fetching
from tests.integration import erasing
from tests.integration.packing import Counter, counter, folder, lines

if TYPE_CHECKING:
    from conftest import Mint, Serving

    from config.settings import Settings
    from jobs.resources import Resources


@pytest.fixture
async def desk(
    settings: "Settings", resources: "Resources", mint: "Mint", serving: "Serving", tmp_path: Path
) -> AsyncIterator[Counter]:
    async with counter(settings, resources, mint, serving, folder(tmp_path / "packages")) as opened:
        yield opened


async def test_an_erasure_meanwhile_cancels_it_and_takes_away_what_it_wrote(
    desk: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.say("soon gone")
    export = await desk.ask()
    fill = exporting.fill

    async def fill_too_late(*arguments: Any) -> Any:
        filled = await fill(*arguments)
        assert len(await desk.files()) == 1
        await desk.erase_person()
        return filled

    monkeypatch.setattr(exporting, "fill", fill_too_late)
    assert await desk.run(export) == Done()
    assert await desk.files() == []
    assert (await desk.look(export))["state"] == "cancelled"
    assert (await desk.try_fetching(export)).status_code == 409
    assert len(await desk.receipts("export.cancelled")) == 1
    assert await desk.receipts("export.ready") == []


async def test_a_run_notices_an_erasure_before_its_end(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    export = await desk.ask()
    await desk.erase_person()
    monkeypatch.setattr(exporting, "_fill", None)  # never reached
    assert await desk.run(export) == Done()
    assert (await desk.look(export))["state"] == "cancelled"


async def test_a_ready_package_of_somebody_erased_is_served_no_more(desk: Counter) -> None:
    await desk.say("hello")
    export, _ = await desk.make()
    await desk.erase_person()
    refused = await desk.try_fetching(export)
    assert (refused.status_code, refused.json()["state"]) == (409, "cancelled")
    assert len(await desk.receipts("export.downloaded")) == 1
    folder_of = "/".join((await desk.files())[0].split("/")[:2])
    await desk.run(export, "expire_export")
    assert await desk.store.files(folder_of) == []


async def test_an_erasure_takes_packages_away_and_finds_nothing_left_of_them(desk: Counter, mint: "Mint") -> None:
    space = await desk.resources.database.pool.fetchval("SELECT name FROM spaces WHERE id = $1", desk.space)
    officer = await mint(space, ("operator",), owner="rui")  # her own key goes with her
    await desk.say("hello")
    export, _ = await desk.make()
    half = desk.store.writing(f"{(await desk.files())[0].rsplit('/', 1)[0]}/{'0' * 32}.1")
    await (await half.__aenter__()).write(b"of a run that died")
    assert len(await desk.files()) == 2
    erasure = await erasing.accept(desk.resources, desk.space, desk.key.owner)
    assert await erasing.finish(desk.workshop, desk.space) == Done()
    assert (await erasing.stands(desk.resources, desk.space, erasure)).state == "completed"
    assert await desk.files() == []
    for path in (f"/v1/exports/{export}", f"/v1/exports/{export}/package"):
        assert (await desk.client.get(path, headers=officer.headers)).status_code == 404


async def test_a_run_over_an_erased_row_takes_its_own_leftovers_away(desk: Counter) -> None:
    export = await desk.ask()
    claim = await desk.claim(export)
    async with desk.store.writing(f"{claim.payload['folder']}/{export[4:]}.{claim.epoch - 1}") as writer:
        await writer.write(b"of a run that died")
    await desk.erase_person()
    await desk.write("DELETE FROM exports WHERE space_id = $1", desk.space)
    assert await exporting.export_subject(claim, desk.workshop) == Done()
    assert await desk.files() == []


async def conversation(desk: Counter) -> Target:
    """The person's one conversation, as its erasure names it."""
    async with desk.resources.database.begin(desk.space) as tx:
        row = await (await driver(tx)).fetchval("SELECT id FROM conversations WHERE space_id = $1", desk.space)
    return Target(desk.space, conversations=(row,))


async def test_a_conversation_s_erasure_ends_the_packages_that_hold_it(desk: Counter) -> None:
    await desk.say("a conversation that is to go")
    ready, waiting = (await desk.make())[0], await desk.ask()
    async with desk.resources.database.begin(desk.space) as tx:
        connection = await driver(tx)
        target = await conversation(desk)
        assert await EXPORTS.erase(connection, target, 1_000) == 2
        assert await EXPORTS.erase(connection, target, 1_000) == 0
    assert [(await desk.look(one))["state"] for one in (ready, waiting)] == ["cancelled", "cancelled"]
    assert (await desk.try_fetching(ready)).status_code == 409
    assert await desk.run(waiting) == Done()
    assert await desk.run(ready, "expire_export") == Done()
    assert await desk.files() == []


async def test_no_package_is_made_while_a_conversation_in_it_is_being_erased(desk: Counter) -> None:
    await desk.say("a conversation that is going")
    export, target = await desk.ask(), await conversation(desk)
    gone = json.dumps({"subjects": [], "logs": [], "conversations": list(target.conversations)})
    await desk.write(
        "INSERT INTO erasures (id, space_id, kind, target, reason_code, actor)"
        " VALUES (gen_random_uuid(), $1, 'conversation', $2::text::jsonb, 'other', 'key_test')",
        *(desk.space, gone),
    )
    claim = await desk.claim(export)
    assert await exporting.export_subject(claim, desk.workshop) == Later(5.0, "erasure_in_progress", counts=False)
    assert await desk.files() == []
    await desk.write("DELETE FROM turns WHERE space_id = $1", desk.space)
    assert await exporting.export_subject(claim, desk.workshop) == Done()
    assert lines(await desk.fetch(export), "data/turns.jsonl") == []


async def test_a_run_over_a_package_that_is_ready_leaves_it_as_it_is(desk: Counter) -> None:
    export, _ = await desk.make()
    claim = of_long_ago(desk, export)
    assert await exporting.export_subject(claim, desk.workshop) == Nothing()
    assert (await desk.try_fetching(export)).status_code == 200


def of_long_ago(desk: Counter, export: str) -> Claim:
    """A claim of long ago."""
    payload = {"export": export[4:], "folder": exports.folder(desk.space, desk.key.owner)}
    return Claim(0, 0, "export_subject", "interactive", desk.space, "", 1, 0, 0, payload, {})


async def test_a_package_of_somebody_held_is_kept_and_not_served(desk: Counter) -> None:
    export, _ = await desk.make()
    await desk.write("UPDATE exports SET expires_at = clock_timestamp() WHERE space_id = $1", desk.space)
    async with desk.resources.database.begin(desk.space) as tx:
        assert await hold.place(await driver(tx), desk.space, desk.key.owner, "key_test")
    assert await desk.run(export, "expire_export") == Later(3600.0, "legal_hold", counts=False)
    assert len(await desk.files()) == 1
    assert (await desk.try_fetching(export)).json()["state"] == "expired"


async def test_an_erasure_breaks_a_download_off(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.say("hello")
    export, _ = await desk.make()
    package = await fetching.find(desk.resources, desk.space, UUID(export[4:]))
    monkeypatch.setattr(fetching, "_STILL_THERE", -1.0)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x"

    going = fetching._while_it_stands(desk.resources, package, b"first", endless())
    assert [await anext(going) for _ in range(3)] == [b"first", b"x", b"x"]
    await desk.erase_person()
    with pytest.raises(fetching.NotReady):
        await anext(going)


@pytest.mark.parametrize("dies_after", ["part", "file"])
async def test_a_killed_run_starts_again_and_leaves_no_orphan(
    desk: Counter, monkeypatch: pytest.MonkeyPatch, dies_after: str
) -> None:
    await desk.say("all of it")
    export = await desk.ask()
    claim = await desk.claim(export)
    run = exporting.Run(claim, desk.workshop, desk.store, exporting.UUID(export[4:]), claim.payload["folder"])
    if dies_after == "file":  # whole, and the worker dies before it says so
        async with desk.store.writing(run.file) as writer:
            await writer.write(b"of a dead run")
    else:
        path = desk.store.root / f"{run.file}.part"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"of a dead run")
    await desk.crash(claim)
    assert len(await desk.files()) == 1
    assert await desk.run(export) == Done()
    (file,) = await desk.files()
    assert not file.startswith(run.file)
    assert [line["text"] for line in lines(await desk.fetch(export), "data/turns.jsonl")] == ["all of it"]


async def test_a_run_that_lost_its_claim_makes_nothing_ready(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    export = await desk.ask()
    claim = await desk.claim(export)
    await desk.crash(claim)
    with pytest.raises(exporting.Superseded):
        await exporting.export_subject(claim, desk.workshop)
    assert await desk.files() == []
    assert (await desk.look(export))["state"] in ("accepted", "running")


async def test_a_run_that_breaks_leaves_nothing(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    export = await desk.ask()

    async def broken(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(exporting, "fill", broken)
    with pytest.raises(RuntimeError):
        await desk.run(export)
    assert await desk.files() == []


async def test_a_cancelled_run_leaves_nothing(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    export = await desk.ask()
    reached, never = asyncio.Event(), asyncio.Event()

    async def stuck(*_: Any) -> Any:
        reached.set()
        await never.wait()

    monkeypatch.setattr(exporting, "fill", stuck)
    task = asyncio.create_task(desk.run(export))
    await reached.wait()
    assert len(await desk.files()) == 1
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert await desk.files() == []
