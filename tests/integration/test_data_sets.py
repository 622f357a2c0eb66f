"""Each data set counts, exports and erases what one person has, and not a row of anybody else's."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from models import registry, schema
from models.database import driver
from models.dataset import Target, Walked, see_expired
from tests.integration.logbook import Book, Shelf

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


async def target(book: Book) -> Target:
    """What the owner of a book has."""
    subject = book.key.owner
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        logs = await connection.fetch("SELECT id FROM logs WHERE subject_id = $1", subject)
        conversations = await connection.fetch("SELECT id FROM conversations WHERE subject_id = $1", subject)
    ids = [tuple(row["id"] for row in rows) for rows in (logs, conversations)]
    return Target(book.space, (subject,), *ids)


async def counts(book: Book, whose: Target) -> dict[str, int]:
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        return {one.name: await one.count(connection, whose) for one in registry.DATA_SETS}


async def exported(book: Book, whose: Target) -> dict[str, list[Any]]:
    keys = {subject: await book.resources.keys.key(subject) for subject in whose.subjects}
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        return {
            one.name: [json.loads(json.dumps(row)) async for row in one.export(connection, whose, keys)]
            for one in registry.DATA_SETS
        }


async def erase(book: Book, whose: Target, most: int) -> dict[str, list[int]]:
    """As the job does, in batches; answers their sizes."""
    sizes: dict[str, list[int]] = {}
    for one in registry.DATA_SETS:
        sizes[one.name] = []
        while True:
            async with book.resources.database.begin(book.space) as tx:
                connection = await driver(tx)
                await see_expired(connection)
                gone = await one.erase(connection, whose, most)
            if not gone:
                break
            sizes[one.name].append(gone)
    return sizes


async def rows(book: Book) -> dict[str, list[str]]:
    """Every row of the book's space, as bytes of text, by table."""
    async with book.resources.database.begin(book.space) as tx:
        connection = await driver(tx)
        live = await schema.columns(connection)
        tables = sorted({one.table for one in live if one.name == "space_id"})
        found = {}
        for table in tables:
            wanted = f"SELECT t::text FROM {table} t WHERE space_id = $1 ORDER BY 1"  # noqa: S608 - of the catalogue
            found[table] = [row[0] for row in await connection.fetch(wanted, book.space)]
    return found


async def lived(book: Book, *words: str) -> None:
    """Something stands in each table that a person's life fills."""
    await book.say(*(f"My parcel is {word}" for word in words))
    await book.say("And another thing", conversation="c-2")
    await book.run_until_idle()
    await book.write(
        "INSERT INTO model_answers (work_id, step, space_id, subject_id, sealed) SELECT id, 's', space_id, $1, $2 FROM work"
        " WHERE space_id = $3",
        *(book.key.owner, (await book.resources.keys.key(book.key.owner)).seal("[]", "answer"), book.space),
    )
    await book.write(
        "INSERT INTO model_usage (space_id, work_id, job, model, outcome, input_tokens, cached_tokens, output_tokens,"
        " latency_ms) SELECT space_id, id, kind, 'm', 'ok', 1, 0, 1, 1 FROM work WHERE space_id = $1",
        book.space,
    )
    await book.write(
        "INSERT INTO quarantine (space_id, log_id, turn_id, reason, attempts) SELECT space_id, log_id, id, 'refusal', '[]'"
        " FROM turns WHERE space_id = $1 AND seq = 1",
        book.space,
    )


async def test_what_is_counted_is_exported_in_the_same_order_each_time(opened: Opened) -> None:
    async with opened() as book:
        await lived(book, *"abcdefg")
        whose = await target(book)
        first, again = await exported(book, whose), await exported(book, whose)
        assert first == again
        assert {name: len(shown) for name, shown in first.items()} == await counts(book, whose)
    assert [turn["text"] for turn in first["turns"]][:2] == ["My parcel is a", "My parcel is b"]
    assert {one["conversation_id"] for one in first["conversations"]} == {"c-1", "c-2"}
    assert all("parcel" in line["text"] or "thing" in line["text"] for line in first["observations"])
    assert first["handles"][0]["handle"] == book.key.id
    built = {"turns", "observations", "generations", "conversations", "logs", "handles", "subjects", "api_keys", "work"}
    assert all(first[name] for name in built | {"model_answers", "model_usage", "quarantine"})


@pytest.mark.parametrize("most", [3, 5_000])
async def test_erasing_takes_a_person_s_rows_and_leaves_a_neighbour_s_byte_for_byte(opened: Opened, most: int) -> None:
    async with opened() as book, opened() as neighbour:
        await lived(book, *"abcdefg")
        await lived(neighbour, *"abcdefg")
        before, whose = await rows(neighbour), await target(book)
        had = await counts(book, whose)
        sizes = await erase(book, whose, most)
        assert {name: n for name, n in (await counts(book, whose)).items() if n} == {}
        assert await erase(book, whose, most) == {name: [] for name in sizes}
        assert await rows(neighbour) == before
    assert all(size <= most for batches in sizes.values() for size in batches)
    assert {name: sum(batches) for name, batches in sizes.items()} == had


async def test_a_walk_takes_every_turn_once_over_gaps_and_logs(opened: Opened) -> None:
    async with opened() as book:
        await book.say(*(f"My parcel is {number}" for number in range(10)))
        await book.write("UPDATE turns SET seq = seq + 40000 WHERE space_id = $1 AND seq > 7", book.space)
        whose = replace(await target(book), conversations=())
        whose = replace(whose, logs=(0, *whose.logs, 2**62))
        turns = registry.named("turns")
        assert isinstance(turns, Walked)
        place, gone, steps = (0, 0), 0, 0
        while place is not None:
            async with book.resources.database.begin(book.space) as tx:
                rows_gone, place = await turns.walk(await driver(tx), whose, place, 4)
            gone, steps = gone + rows_gone, steps + 1
            assert rows_gone <= 4
        assert (gone, await book.turns()) == (10, [])
    assert steps < 15


async def test_a_conversation_that_goes_is_counted_off_the_log_that_stays(opened: Opened) -> None:
    async with opened() as book:
        await book.say("one two three", "four five", conversation="stays")
        await book.say("six seven eight", "nine", conversation="goes")
        async with book.resources.database.begin(book.space) as tx:
            goes = await (await driver(tx)).fetchval(
                "SELECT max(id) FROM conversations WHERE space_id = $1", book.space
            )
        waiting = (await book.log()).pending_tokens
        await erase(book, Target(book.space, conversations=(goes,)), 1)
        log, left = await book.log(), await book.turns()
        assert [turn.seq for turn in left] == [1, 2]
        assert (log.pending_turns, log.erased_turns, log.oldest_pending_at) == (2, 2, left[0].created_at)
        assert 0 < log.pending_tokens == sum(turn.tokens for turn in left) < waiting
        await book.run_until_idle()
        assert await book.states() == {"observed": 2}
