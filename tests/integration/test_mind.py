import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

import pytest

from jobs.mind import Mind, MindBroke, MindLost, awake

_A_PARENT = """
import asyncio, os, sys, time
from jobs.mind import awake

async def main():
    async with awake() as mind:
        print(await mind.think(os.getpid), flush=True)
        await mind.think(time.sleep, 600)

asyncio.run(main())
"""


@pytest.fixture
async def mind() -> AsyncIterator[Mind]:
    async with awake() as mind:
        yield mind


async def test_thinking_is_done_by_one_other_process_behind_this_one(mind: Mind) -> None:
    thinker = await mind.think(os.getpid)
    assert thinker != os.getpid()
    assert await mind.think(os.getpid) == thinker
    assert await mind.think(os.getpriority, os.PRIO_PROCESS, 0) > os.getpriority(os.PRIO_PROCESS, 0)


async def test_thoughts_that_are_asked_for_at_once_get_each_its_own_answer(mind: Mind) -> None:
    asked = [str(number) * 100_000 for number in range(10)]
    assert await asyncio.gather(*(mind.think(str.title, text) for text in asked)) == asked


async def test_what_breaks_is_named_and_not_quoted(mind: Mind) -> None:
    with pytest.raises(MindBroke) as raised:
        await mind.think(int, "Ana Lima")
    assert str(raised.value) == "ValueError"
    assert "jobs/mind.py" in raised.value.__notes__[0]
    assert "Ana" not in raised.value.__notes__[0]
    assert await mind.think(int, "7") == 7


async def test_what_is_printed_while_thinking_is_no_answer(mind: Mind) -> None:
    await mind.think(print, "hello")
    assert await mind.think(int, "7") == 7


async def test_a_mind_that_is_lost_over_a_thought_is_followed_by_another(mind: Mind) -> None:
    with pytest.raises(MindLost):
        await mind.think(os.abort)
    assert await mind.think(int, "7") == 7


async def test_a_thought_that_is_cancelled_ends_and_answers_nobody_else(mind: Mind) -> None:
    thinker = await mind.think(os.getpid)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await mind.think(time.sleep, 600)
    assert await mind.think(os.getpid) != thinker


async def test_signals_to_the_whole_group_leave_a_thought_to_its_end(mind: Mind) -> None:
    thinker = await mind.think(os.getpid)
    await mind.think(signal.raise_signal, signal.SIGTERM)
    await mind.think(signal.raise_signal, signal.SIGINT)
    assert await mind.think(os.getpid) == thinker


async def test_a_parent_that_is_killed_leaves_no_orphan() -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _A_PARENT),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    assert int(await parent.stdout.readline()) != parent.pid
    parent.kill()
    async with asyncio.timeout(10):
        assert await parent.stderr.read() == b""  # both had it open: both are gone
