"""Files of chats taken in: many conversations a commit, and yet in their order."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from cli.importing import Report, take_all
from cli.owner import Owner
from intake.batcher import Batcher
from models.content import open_turn
from models.turn import StoredTurn

if TYPE_CHECKING:
    from jobs.resources import Resources

MANY = 150


@pytest.fixture
def owner() -> Owner:
    return Owner(f"import-{uuid4().hex}", "support", "owner:ana", "corporate")


def chat(*contents: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content, **more} for content in contents]}


async def taken(resources: "Resources", tmp_path: Path, owner: Owner, *lines: dict[str, Any], end: str = "") -> Report:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end)
    (report,) = await take_all(resources, [path], owner)
    return report


async def turns_in_order(resources: "Resources", owner: Owner) -> list[str]:
    space = (await owner.credential(resources)).space
    async with resources.database.begin(space) as tx:
        rows = (await tx.execute(select(StoredTurn).order_by(col(StoredTurn.seq)))).scalars().all()
    keys = await resources.keys.keys([row.subject_id for row in rows])
    return [open_turn(row, keys[row.subject_id]).text for row in rows]


async def test_conversations_go_in_in_their_order_whatever_their_size(
    resources: "Resources", tmp_path: Path, owner: Owner
) -> None:
    chats = [[f"{number} {place}" for place in range(3)] for number in range(MANY)]
    chats[40] = [f"40 {'word ' * 8_000}"]  # masked in a thread
    chats[90] = [f"90 {place}" for place in range(1_100)]  # several calls
    report = await taken(resources, tmp_path, owner, *(chat(*contents) for contents in chats))
    assert (report.conversations, report.accepted) == (MANY, sum(map(len, chats)))
    assert await turns_in_order(resources, owner) == [content for contents in chats for content in contents]
    again = await taken(resources, tmp_path, owner, *(chat(*contents) for contents in chats))
    assert (again.accepted, again.duplicates) == (0, report.accepted)


async def test_small_conversations_share_commits(
    resources: "Resources", tmp_path: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = []
    write = Batcher._write

    async def counted(batcher: Batcher, calls: Any) -> Any:
        batches.append(len(calls))
        return await write(batcher, calls)

    monkeypatch.setattr(Batcher, "_write", counted)
    await taken(resources, tmp_path, owner, *(chat(str(number)) for number in range(MANY)))
    assert sum(batches) == MANY
    assert len(batches) < MANY / 10


async def test_what_stands_before_the_place_where_a_file_goes_wrong_is_taken(
    resources: "Resources", tmp_path: Path, owner: Owner
) -> None:
    report = await taken(resources, tmp_path, owner, chat("one"), chat("two"), end='{"messages": [')
    assert report.problem is not None
    assert await turns_in_order(resources, owner) == ["one", "two"]


async def test_turns_without_a_time_are_counted_and_those_before_the_first_time_have_it(
    resources: "Resources", tmp_path: Path, owner: Owner
) -> None:
    dated = chat("first", "second")
    dated["messages"][1]["at"] = "2025-03-02T10:15:00Z"
    report = await taken(resources, tmp_path, owner, dated, chat("no time", "none either"))
    assert report.undated == 2
    space = (await owner.credential(resources)).space
    async with resources.database.begin(space) as tx:
        times = (await tx.execute(select(StoredTurn.said_at).order_by(col(StoredTurn.seq)))).scalars().all()
    assert [at.year for at in times[:2]] == [2025, 2025]


async def test_what_was_said_before_an_erasure_is_refused_and_told(
    resources: "Resources", tmp_path: Path, owner: Owner
) -> None:
    await taken(resources, tmp_path, owner, chat("hello", at="2026-03-02T10:15:00Z"))
    space = (await owner.credential(resources)).space
    async with resources.database.begin(space) as tx:
        await tx.execute(text("UPDATE subjects SET reborn_at = '2026-03-01'"))
    late, early = chat("later", at="2026-03-02T11:00:00Z"), chat("earlier", at="2026-02-01T10:00:00Z")
    report = await taken(resources, tmp_path, owner, late, early)
    assert (report.accepted, dict(report.refused)) == (1, {"it was said before an erasure of its person": 1})
