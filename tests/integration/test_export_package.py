"""An export from the request to the package: what is in it, that it is whole, that nothing of it stays behind."""

import asyncio
import json
import subprocess
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs import export as exporting
from jobs import package_filling
from jobs.package_words import words
from jobs.verdict import Done, Later
from models.registry import DATA_SETS, NOTHING_PERSONAL
from tests.integration import erasing
from tests.integration.packing import Counter, counter, folder, lines

if TYPE_CHECKING:
    from conftest import Mint, Serving

    from config.settings import Settings
    from jobs.resources import Resources

HOSTILE = '<script>alert(1)</script><img src=x onerror="x()">=cmd|\u202e\x00\x1b[2J'


@pytest.fixture
async def desk(
    settings: "Settings", resources: "Resources", mint: "Mint", serving: "Serving", tmp_path: Path
) -> AsyncIterator[Counter]:
    async with counter(settings, resources, mint, serving, folder(tmp_path / "packages")) as opened:
        yield opened


async def test_a_package_holds_every_data_set_and_checks_out_by_sha256sum(desk: Counter, tmp_path: Path) -> None:
    await desk.say("I moved to Porto in May.", "My cat is called Miau.")
    export, package = await desk.make()
    package.extractall(tmp_path / "unpacked")
    checked = await asyncio.to_thread(_sha256sum, tmp_path / "unpacked")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(checked.stdout.splitlines()) == len(package.namelist()) - 1  # all but the list itself
    manifest = json.loads(package.read("manifest.json"))
    assert [one["name"] for one in manifest["data_sets"]] == sorted(one.name for one in DATA_SETS)
    assert all(len(lines(package, one["file"])) == one["rows"] for one in manifest["data_sets"])
    said = "\n".join(f"{one['what']} {one['why']}" for one in manifest["not_included"])
    assert all(table in said for table in NOTHING_PERSONAL if table != "receipts")
    assert [line["text"] for line in lines(package, "data/turns.jsonl")] == [
        "I moved to Porto in May.",
        "My cat is called Miau.",
    ]
    assert [line["handle"] for line in lines(package, "data/handles.jsonl")] == ["ana"]
    assert [line["action"] for line in lines(package, "receipts.jsonl")] == ["export.requested"]
    look = await desk.look(export)
    assert (look["state"], look["counts"]["turns"]) == ("ready", 2)


async def test_all_its_lists_name_whatever_the_registry_has(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shoes:
        """A data set that somebody adds some day, with a word about it to nobody."""

        name, tables = "left_shoes", {"shoes": {}}

        async def count(self, *_: Any) -> int:
            return 1

        async def export(self, *_: Any) -> AsyncIterator[dict[str, Any]]:
            yield {"id": 1, "text": "a brown one"}

    monkeypatch.setattr(exporting, "DATA_SETS", (*DATA_SETS, Shoes()))
    _, package = await desk.make()
    readme, page = package.read("README.txt").decode(), package.read("index.html").decode()
    listed = page.partition("<h2>Contents</h2>")[2].partition("</table>")[0]
    for name in (*(one.name for one in DATA_SETS), "left_shoes"):
        assert f"(data/{name}.jsonl)" in readme
        assert words(name).title in readme
        assert words(name).title in listed
        assert f"data/{name}.jsonl" in package.namelist()
    assert lines(package, "data/left_shoes.jsonl") == [{"id": 1, "text": "a brown one"}]
    assert "a brown one" in page


@pytest.mark.parametrize("data_set", DATA_SETS, ids=lambda one: one.name)
def test_every_data_set_is_told_of_in_words_of_its_own(data_set: Any) -> None:
    assert words(data_set.name).what, "jobs/package_words.py has a line for each"


def _sha256sum(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = ["sha256sum", "-c", "manifest-sha256.txt"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


async def test_only_the_person_s_own_rows_are_in_it(desk: Counter, mint: "Mint") -> None:
    space = await desk.resources.database.pool.fetchval("SELECT name FROM spaces WHERE id = $1", desk.space)
    other = await mint(space, ("turns:write",), owner="rui")
    told = {"agent": "support", "conversation_id": "c-1", "turns": [{"role": "user", "content": "neighbourly"}]}
    assert (await desk.client.post("/v1/turns", json=told, headers=other.headers)).status_code == 202
    await desk.say("mine")
    _, package = await desk.make()
    whole = b"".join(package.read(name) for name in package.namelist())
    assert b"mine" in whole
    assert b"neighbourly" not in whole
    assert other.owner.hex.encode() not in whole


async def test_hostile_text_stays_text_on_the_page(desk: Counter) -> None:
    await desk.say(HOSTILE)
    _, package = await desk.make()
    page = package.read("index.html").decode()
    assert "<script" not in page
    assert "onerror=&quot;x()&quot;" in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "default-src &#x27;none&#x27;" in page
    assert "://" not in page.replace("http-equiv", "")


async def test_the_package_is_at_rest_sealed_and_private(desk: Counter, tmp_path: Path) -> None:
    await desk.say("Only Ana may read this.")
    await desk.make()
    (name,) = await desk.files()
    file = tmp_path / "packages" / name
    assert b"Ana may read" not in file.read_bytes()
    assert not zipfile.is_zipfile(file)
    assert desk.key.owner.hex not in name
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "packages").stat().st_mode & 0o777 == 0o700


async def test_two_packages_of_one_state_differ_in_ids_and_times_alone(desk: Counter) -> None:
    await desk.say(*(f"line {number}" for number in range(50)))
    first, second = await asyncio.gather(desk.ask(), desk.ask())
    assert first != second
    assert await asyncio.gather(desk.run(first), desk.run(second)) == [Done(), Done()]
    packages = [await desk.fetch(one) for one in (first, second)]
    assert packages[0].namelist() == packages[1].namelist()
    assert {entry.date_time for package in packages for entry in package.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    differing = {name for name in packages[0].namelist() if packages[0].read(name) != packages[1].read(name)}
    assert differing <= {
        *("data/exports.jsonl", "receipts.jsonl"),
        *("index.html", "manifest.json", "manifest-sha256.txt"),
    }


async def test_a_package_shows_one_instant_whatever_is_written_meanwhile(
    desk: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.say("before")
    export = await desk.ask()
    fill = exporting.fill

    async def fill_late(*arguments: Any) -> Any:
        await desk.say("after", conversation="c-2", agent="sales")
        return await fill(*arguments)

    monkeypatch.setattr(exporting, "fill", fill_late)
    await desk.run(export)
    package = await desk.fetch(export)
    assert [line["text"] for line in lines(package, "data/turns.jsonl")] == ["before"]
    assert len(lines(package, "data/logs.jsonl")) == len(lines(package, "data/conversations.jsonl")) == 1


async def test_its_progress_can_be_seen(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.say(*(f"line {number}" for number in range(20)))
    monkeypatch.setattr(package_filling, "_AT_ONCE", 1)
    monkeypatch.setattr(exporting, "_BEAT", 0.0)
    beat, seen = exporting.Run.beat, []

    async def watched(run: Any, *told: Any) -> None:
        await beat(run, *told)
        seen.append((await desk.look(export))["progress"])

    monkeypatch.setattr(exporting.Run, "beat", watched)
    export = await desk.ask()
    await desk.run(export)
    assert [one["rows"] for one in seen] == list(range(1, 1 + seen[-1]["of"]))
    assert "progress" not in await desk.look(export)


async def test_sealed_receipts_come_with_their_proof(desk: Counter) -> None:
    await desk.make()
    await erasing.seal(desk.workshop, desk.space)
    _, package = await desk.make()
    proven = {line["action"]: line["proof"] for line in lines(package, "receipts.jsonl") if line["proof"]}
    assert {"export.requested", "export.ready", "export.downloaded"} <= proven.keys()
    assert proven["export.ready"]["receipt"]["action"] == "export.ready"


async def test_expired_rows_are_counted_and_not_given(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.say("still here")
    count = exporting.count

    async def more(*arguments: Any) -> dict[str, int]:
        counted = await count(*arguments)
        return {**counted, "turns": counted["turns"] + 3}  # as a transaction that sees expired rows counts them

    monkeypatch.setattr(exporting, "count", more)
    _, package = await desk.make()
    manifest = json.loads(package.read("manifest.json"))
    (turns,) = [one for one in manifest["data_sets"] if one["name"] == "turns"]
    assert (turns["rows"], turns["expired"]) == (1, 3)
    assert "3 rows of turns" in [one["what"] for one in manifest["not_included"]]


async def test_work_that_was_given_up_is_a_failed_export(desk: Counter) -> None:
    export = await desk.ask()
    await desk.resources.database.pool.execute(
        "UPDATE work SET state = 'dead' WHERE scope = $1 AND kind = 'export_subject'", f"export:{export[4:]}"
    )
    assert (await desk.look(export))["state"] == "failed"
    assert (await desk.try_fetching(export)).json()["code"] == "no_package"


async def test_a_package_is_not_served_from_its_last_instant_on_and_then_goes(desk: Counter) -> None:
    await desk.say("hello")
    export, _ = await desk.make()
    assert await desk.run(export, "expire_export") == Later(3600.0, "not_over", counts=False)
    await desk.write("UPDATE exports SET expires_at = clock_timestamp() WHERE space_id = $1", desk.space)
    assert (await desk.look(export))["state"] == "expired"
    assert (await desk.try_fetching(export)).json()["state"] == "expired"
    assert len(await desk.files()) == 1  # not swept yet
    await desk.resources.database.pool.execute(
        "UPDATE work SET state = 'ready', owner = NULL, claimed_until = NULL WHERE scope = $1 AND state = 'claimed'",
        f"export:{export[4:]}",
    )
    assert await desk.run(export, "expire_export") == Done()
    assert await desk.files() == []
    assert len(await desk.receipts("export.expired")) == 1


async def test_each_step_leaves_a_receipt_with_ids_alone(desk: Counter) -> None:
    await desk.make()
    for action, actor in (
        ("export.requested", desk.key.id),
        ("export.ready", "job:export_subject"),
        ("export.downloaded", desk.key.id),
    ):
        (receipt,) = await desk.receipts(action)
        assert receipt["actor"] == actor
        assert "ana" not in receipt["ids"]


async def test_the_same_request_again_is_the_same_export(desk: Counter) -> None:
    first = await desk.ask(**{"Idempotency-Key": "k-1"})
    assert await desk.ask(**{"Idempotency-Key": "k-1"}) == first
    assert await desk.ask(**{"Idempotency-Key": "k-2"}) != first
    assert len(await desk.receipts("export.requested")) == 2


async def test_what_is_not_there_and_what_is_another_s_are_answered_alike(desk: Counter, mint: "Mint") -> None:
    export, _ = await desk.make()
    stranger, pinned = await mint(scopes=("operator",)), await mint(scopes=("operator",), agent="sales")
    names = (export, "exp_" + "0" * 32, "exp_x", export[4:], export.upper())
    paths = [f"/v1/exports/{name}{what}" for name in names for what in ("", "/package")]
    answers = [await desk.client.get(path, headers=key.headers) for key in (stranger, pinned) for path in paths]
    answers.append(await desk.try_asking("nobody"))
    said = [{**answer.json(), "instance": None} for answer in answers]
    assert {answer.status_code for answer in answers} == {404}
    assert all(one == said[0] for one in said)


async def test_a_key_without_the_scope_is_refused(desk: Counter, mint: "Mint") -> None:
    key = await mint(scopes=("memory:read",))
    for method, path in (("POST", ""), ("GET", "/exp_" + "0" * 32), ("GET", f"/exp_{'0' * 32}/package")):
        answer = await desk.client.request(method, f"/v1/exports{path}", json={}, headers=key.headers)
        assert (answer.status_code, answer.json()["scope"]) == (403, "operator")


async def test_a_package_that_was_cut_short_breaks_off(desk: Counter) -> None:
    await desk.say("x" * 200_000)
    export, _ = await desk.make()
    (name,) = await desk.files()
    path = desk.store.root / name
    path.write_bytes(path.read_bytes()[:-20])
    refused = await desk.try_fetching(export)
    assert (refused.status_code, refused.json()["code"]) == (500, "internal")
    assert len(await desk.receipts("export.downloaded")) == 1  # the first, which `make` fetched


async def test_without_a_place_for_packages_none_is_taken_on(client: Any, mint: "Mint") -> None:
    key = await mint(scopes=("operator",), owner="ana")
    body = {"subject": {"handle_kind": "owner", "handle": "ana"}}
    answer = await client.post("/v1/exports", json=body, headers=key.headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "packages_off")
