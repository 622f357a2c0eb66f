"""A conversation goes from a log that stays: with every line that came of it, and nothing that did not."""

from collections.abc import Callable
from typing import Any

import pytest

from intake.erasure import Wish, accept
from models.database import driver
from models.dataset import Target
from models.retraction import retract
from models.work import Superseded
from tests.integration.logbook import Book, Shelf
from tests.integration.test_data_sets import erase

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


async def conversation(book: Book, nth: int) -> Target:
    """The nth conversation of a book, as a target."""
    async with book.resources.database.begin(book.space) as tx:
        rows = await (await driver(tx)).fetch(
            "SELECT id FROM conversations WHERE space_id = $1 ORDER BY id", book.space
        )
    return Target(book.space, conversations=(rows[nth]["id"],))


async def retracted(book: Book, target: Target) -> int:
    async with book.resources.database.begin(book.space) as tx:
        return await retract(await driver(tx), target)


async def two_conversations(book: Book) -> None:
    """Turns 1 and 2 stay, 3 and 4 go; each has its line."""
    await book.say("My parcel is amber", "My parcel is blue", conversation="stays")
    await book.say("My parcel is coral", "My parcel is dark", conversation="goes")
    await book.run_until_idle()
    assert [line.evidence for line in await book.lines()] == [(turn.id,) for turn in await book.turns()]


async def test_what_came_of_it_goes_and_what_else_it_stood_on_is_pending_again(opened: Opened) -> None:
    async with opened() as book:
        await two_conversations(book)
        amber, blue, coral, dark = await book.turns()
        lines = [line.id for line in await book.lines()]
        # One line stands on both, and another was corrected by one that stays.
        await book.write("UPDATE observations SET evidence = $1 WHERE id = $2", [amber.id, coral.id], lines[2])
        await book.write("UPDATE observations SET supersedes = $1 WHERE id = $2", lines[3], lines[1])
        goes = await conversation(book, 1)
        assert await retracted(book, goes) == 2
        kept = await book.lines()
        assert [(line.id, line.supersedes) for line in kept] == [(lines[0], None), (lines[1], None)]
        turns = {turn.id: turn for turn in await book.turns()}
        assert (turns[amber.id].seq, turns[amber.id].state, turns[amber.id].generation) == (5, "pending", None)
        assert (turns[blue.id].seq, turns[blue.id].state) == (2, "observed")
        log = await book.log()
        assert (log.last_seq, log.pending_turns, log.pending_tokens) == (5, 1, amber.tokens)
        assert log.live_tokens == sum(line.tokens for line in kept)
        assert await retracted(book, goes) == 0
        await erase(book, goes, 1)
        await book.write(
            "INSERT INTO work (kind, queue_class, space_id, scope, dedup, payload) VALUES"
            " ('observe', 'memory', $1, 'log:' || $2::bigint, 'log:' || $2::bigint, jsonb_build_object('log_id', $2::bigint))",
            book.space,
            log.id,
        )
        await book.run_until_idle()
        assert {line.text for line in await book.lines()} == {"User: parcel is amber", "User: parcel is blue"}
        assert (await book.states(), (await book.log()).erased_turns) == ({"observed": 2}, 2)
        assert {coral.id, dark.id}.isdisjoint(turn.id for turn in await book.turns())


async def test_it_is_followed_through_every_generation(opened: Opened) -> None:
    async with opened() as book:
        await two_conversations(book)
        log, lines = await book.log(), [line.id for line in await book.lines()]
        await book.write(
            "INSERT INTO generations (log_id, number, space_id, made_by, parent) VALUES ($1, 2, $2, 'reflect', 1)",
            *(log.id, book.space),
        )
        copied = (
            "INSERT INTO observations (space_id, log_id, subject_id, generation, sealed, digest, kind, priority, tokens,"
            " observed_at, observed_offset, evidence, sources, born_at) SELECT space_id, log_id, subject_id, 2, sealed,"
            " digest, kind, priority, tokens, observed_at, observed_offset, {evidence}, ARRAY[id], born_at"
            " FROM observations WHERE id = $1"
        )
        first = (await book.turns())[0].id
        await book.write(copied.format(evidence="evidence"), lines[0])
        # A rewriting that lost its evidence on the way is found by its source all the same.
        await book.write(copied.format(evidence=f"ARRAY[{first}::bigint]"), lines[3])
        await book.write("UPDATE logs SET generation = 2 WHERE id = $1", log.id)
        assert await retracted(book, await conversation(book, 1)) == 3
        assert len(await book.lines(1)) == 2
        assert [line.evidence for line in await book.lines(2)] == [(first,)]


async def test_a_run_that_read_the_conversation_cannot_write_what_it_thought(opened: Opened) -> None:
    async with opened() as book:
        await book.say("My parcel is amber", conversation="stays")
        await book.say("My parcel is coral", conversation="goes")
        claim = await book.claim()
        goes = await conversation(book, 1)
        await retracted(book, goes)
        with pytest.raises(Superseded):
            await book.run(claim=claim)
        assert await book.lines() == []
        log = await book.log()
        assert (log.pending_turns, log.pending_tokens) == (1, (await book.turns())[0].tokens)
        await erase(book, goes, 1)
        assert (await book.log()).erased_turns == 1


async def test_from_its_acceptance_on_no_log_tells_of_an_erased_conversation(opened: Opened) -> None:
    async with opened() as book:
        await two_conversations(book)
        (goes,) = (await conversation(book, 1)).conversations
        await accept(book.resources, Wish(book.space, "other", "key_test", conversation=goes))
        assert [line.text for line in await book.lines()] == ["User: parcel is amber", "User: parcel is blue"]


async def test_no_turn_of_it_can_be_sent_back_from_quarantine(opened: Opened) -> None:
    async with opened() as book:
        await two_conversations(book)
        await book.write(
            "INSERT INTO quarantine (space_id, log_id, turn_id, reason, attempts)"
            " SELECT space_id, log_id, id, 'refusal', '[]' FROM turns WHERE space_id = $1 AND seq IN (1, 3)",
            book.space,
        )
        await retracted(book, await conversation(book, 1))
        assert [held.turn_id for held in await book.quarantine()] == [(await book.turns())[0].id]


async def test_a_log_that_says_nothing_of_it_is_left_alone(opened: Opened) -> None:
    async with opened() as book:
        await two_conversations(book)
        before = await book.lines()
        assert await retracted(book, Target(book.space, conversations=(2**62,))) == 0
        assert await retracted(book, Target(book.space)) == 0
        assert await book.lines() == before
