"""Group commit: calls of many clients, and of several processes, go in together and are counted as if one by one."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from intake import batcher
from intake.batcher import Batcher, Call, OtherAgent, OwnerGone, PreparedTurn, Took
from jobs.resources import rhythm
from models.append import Address, ConversationName, LogName
from models.columns import utc_now
from models.content import seal_turn
from models.conversation import SEALED_ID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from conftest import Mint, Minted

    from jobs.resources import Resources
    from models.database import Connection
    from models.log import Rhythm
    from privacy.sealing import SealingKey

TOKENS = 7


@asynccontextmanager
async def batching(resources: Resources, processes: int = 1) -> AsyncIterator[list[Batcher]]:
    """As many batchers as there are API processes."""
    async with asyncio.TaskGroup() as tasks:
        yield [Batcher(resources.database, resources.bell, rhythm(resources.settings), tasks) for _ in range(processes)]


def call(key: Minted, sealing: SealingKey, conversation: str, *messages: str, agent: str = "support") -> Call:
    address = Address(
        LogName(key.owner, agent, "corporate"),
        ConversationName(key.owner, sealing.digest(conversation, SEALED_ID)),
        sealing.seal(conversation, SEALED_ID),
    )
    return Call(key.space, address, [turn(sealing, message) for message in messages])


def turn(sealing: SealingKey, message: str) -> PreparedTurn:
    return PreparedTurn(
        role="user",
        sealed=seal_turn(sealing, f"I said {message}."),
        tokens=TOKENS,
        said_at=utc_now(),
        said_offset=0,
        state="pending",
        reason=None,
        message_digest=sealing.digest(message, "message"),
        task_digest=None,
    )


async def stored(resources: Resources, key: Minted) -> list[tuple[int, str]]:
    """Log and number of every turn of a space, in order, with its agent's name."""
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(key.space))
        rows = await connection.fetch(
            "SELECT t.seq, l.agent FROM turns t JOIN logs l ON l.id = t.log_id WHERE t.space_id = $1 ORDER BY l.id, seq",
            key.space,
        )
    return [(row["seq"], row["agent"]) for row in rows]


async def standing(resources: Resources, key: Minted) -> tuple[int, int, int]:
    """Logs, pending turns and pending tokens, as the space's logs count them."""
    async with resources.database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('afterturn.space', $1, true)", str(key.space))
        row = await connection.fetchrow(
            "SELECT count(*), sum(pending_turns)::int, sum(pending_tokens)::int FROM logs WHERE space_id = $1",
            key.space,
        )
    return tuple(row)


async def letters(resources: Resources, key: Minted) -> int:
    return int(await resources.database.pool.fetchval("SELECT count(*) FROM work WHERE space_id = $1", key.space))


async def test_calls_of_several_processes_about_one_log_are_numbered_and_counted_once(
    resources: Resources, mint: Mint
) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    drawn = random.Random(5)
    said = [[f"m{drawn.randrange(150)}" for _ in range(drawn.randrange(1, 4))] for _ in range(120)]
    async with batching(resources, processes=3) as processes:
        took = await asyncio.gather(
            *(
                processes[place % 3].submit(call(key, sealing, f"c{place % 4}", *dict.fromkeys(messages)))
                for place, messages in enumerate(said)
            )
        )
    different = {(place % 4, message) for place, messages in enumerate(said) for message in messages}
    numbers = [number for number, _ in await stored(resources, key)]
    assert len(numbers) == len(set(numbers)) == len(different) == sum(one.accepted for one in took)
    assert await standing(resources, key) == (1, len(different), TOKENS * len(different))
    assert await letters(resources, key) == 1
    assert max(one.pending_turns for one in took) == len(different)


async def test_calls_that_the_loop_brings_one_after_another_share_a_flush(
    resources: Resources, mint: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    flushed: list[int] = []
    write = batcher.write

    async def noted(connection: Connection, calls: Sequence[Call], pace: Rhythm) -> Any:
        flushed.append(len(calls))
        return await write(connection, calls, pace)

    monkeypatch.setattr(batcher, "write", noted)
    async with batching(resources) as (one,):

        async def comes(turn_of_the_loop: int) -> Took:
            for _ in range(turn_of_the_loop):
                await asyncio.sleep(0)
            return await one.submit(call(key, sealing, "c", f"{turn_of_the_loop}"))

        await asyncio.gather(*map(comes, range(10)))
    assert flushed == [10]


async def test_new_logs_and_conversations_may_begin_in_several_processes_at_once(
    resources: Resources, mint: Mint
) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    calls = [
        call(key, sealing, f"{agent}-{chat}", f"{process}", agent=f"agent-{agent}")
        for agent in range(6)
        for chat in range(3)
        for process in range(3)
    ]
    random.Random(3).shuffle(calls)
    async with batching(resources, processes=3) as processes:
        took = await asyncio.gather(
            *(processes[place % 3].submit(one) for place, one in enumerate(calls)), return_exceptions=True
        )
    assert [one.accepted for one in took if isinstance(one, Took)] == [1] * len(calls)
    assert await standing(resources, key) == (6, len(calls), TOKENS * len(calls))
    assert await letters(resources, key) == 6


async def test_of_two_agents_that_begin_one_conversation_at_once_one_has_it(resources: Resources, mint: Mint) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    async with batching(resources, processes=2) as processes:
        took = await asyncio.gather(
            *(
                processes[place % 2].submit(call(key, sealing, "shared", f"{agent}-{place}", agent=agent))
                for place, agent in enumerate(["first", "second"] * 5)
            ),
            return_exceptions=True,
        )
    assert sorted(type(one).__name__ for one in took) == ["OtherAgent"] * 5 + ["Took"] * 5
    agents = {agent for _, agent in await stored(resources, key)}
    assert len(agents) == 1, "each turn is in the log of the agent that has the conversation"


async def test_one_call_of_an_erased_person_does_not_keep_the_batchs_others_out(
    resources: Resources, mint: Mint
) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    gone = LogName(uuid4(), "support", "corporate")
    lost = call(key, sealing, "c", "lost")
    lost = Call(lost.space, lost.address._replace(log=gone), lost.turns)
    async with batching(resources) as (only,):
        took = await asyncio.gather(
            only.submit(call(key, sealing, "c", "before")),
            only.submit(lost),
            only.submit(call(key, sealing, "c", "after")),
            return_exceptions=True,
        )
    assert isinstance(took[1], OwnerGone)
    assert [one.accepted for one in (took[0], took[2]) if isinstance(one, Took)] == [1, 1]
    assert len(await stored(resources, key)) == 2


async def test_spaces_take_turns_and_each_ones_calls_go_in_together(
    resources: Resources, mint: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[tuple[int, int]] = []
    write = batcher.write

    async def noted(connection: object, calls: Sequence[Call], pace: object) -> object:
        batches.append((calls[0].space, len(calls)))
        assert len({one.space for one in calls}) == 1
        return await write(connection, calls, pace)  # type: ignore[arg-type]

    monkeypatch.setattr(batcher, "write", noted)
    keys = [await mint() for _ in range(5)]
    sealings = [await resources.keys.key(key.owner) for key in keys]
    async with batching(resources) as (only,):
        await asyncio.gather(
            *(
                only.submit(call(key, sealing, "c", f"m{number}"))
                for number in range(10)
                for key, sealing in zip(keys, sealings, strict=True)
            )
        )
    assert sorted(batches) == sorted((key.space, 10) for key in keys)


async def test_a_conversation_of_another_agent_takes_nothing_and_makes_no_log(resources: Resources, mint: Mint) -> None:
    key = await mint()
    sealing = await resources.keys.key(key.owner)
    async with batching(resources) as (only,):
        await only.submit(call(key, sealing, "c", "mine"))
        with pytest.raises(OtherAgent):
            await only.submit(call(key, sealing, "c", "theirs", agent="other"))
    assert await standing(resources, key) == (1, 1, TOKENS)
