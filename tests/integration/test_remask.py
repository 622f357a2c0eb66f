"""Turns wait for the models layer: stored by the local one, marked, observed by nobody until names were looked for."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from api import auth
from api.app import create_app
from gateways.analyzer import Analyzer
from intake.erasure import Wish, accept
from jobs.remask import remask
from jobs.resources import furnished
from jobs.verdict import Done, Later
from models.database import driver
from models.dataset import Target
from models.turn_data import TURNS
from tests.integration.logbook import Book, changed
from tests.integration.namer import Namer, playing

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.settings import Settings
    from jobs.resources import Resources


@pytest.fixture
async def namer() -> AsyncIterator[Namer]:
    async with playing() as server:
        yield server


@pytest.fixture
async def book(
    settings: "Settings", resources: "Resources", mint: Any, serving: "Callable[..., Any]", namer: Namer
) -> AsyncIterator[Book]:
    """A log whose deployment has a models layer; its jobs are run by hand."""
    mine = changed(settings, pii_analyzer_url=SecretStr(namer.url), observer_threshold=10)
    analyzer = Analyzer(namer.url, "en", 20.0)
    here = replace(resources, settings=mine, analyzer=analyzer)
    async with serving(create_app(mine)) as client, furnished(here) as workshop:
        key = await mint(scopes=("turns:write", "memory:read", "operator", "security"))
        book = Book(client, here, workshop, key, None)
        yield book
        await resources.database.pool.execute("DELETE FROM work WHERE space_id = $1", book.space)
        await book.delete_log()
    await analyzer.close()


async def marks(book: Book) -> list[bool]:
    return [row.unmasked for row in await book.turns()]


async def test_a_turn_is_stored_at_once_marked_and_counts_once_names_were_looked_for(book: Book, namer: Namer) -> None:
    await book.say("Zoraide wrote to ana@example.org about it, and I prefer tea to coffee")
    assert await book.texts() == ["Zoraide wrote to <EMAIL_ADDRESS> about it, and I prefer tea to coffee"]
    assert (await marks(book), namer.asked) == ([True], [])
    assert await book.waiting() == ["remask"]
    (told,) = [
        line
        for line in (await book.client.get("/metrics")).text.splitlines()
        if line.startswith("afterturn_turns_unmasked ")
    ]
    assert float(told.split()[1]) >= 1
    await book.post("/v1/observations/flush")
    assert isinstance(await book.run("observe"), Later)
    assert "models layer" in (await book.coverage())["why_not_yet"]
    assert isinstance(await book.run("remask"), Done)
    assert await book.texts() == ["<PERSON> wrote to <EMAIL_ADDRESS> about it, and I prefer tea to coffee"]
    assert await marks(book) == [False]
    log, turns = await book.log(), await book.turns()
    assert log.pending_tokens == sum(turn.tokens for turn in turns)
    await book.run_until_idle()
    assert await book.states() == {"observed": 1}
    assert not any("Zoraide" in line.text for line in await book.lines())
    assert await book.waiting() == []


@pytest.mark.parametrize("mode", ["500", "503", "garbage", "elsewhere", "slow"])
async def test_while_the_models_layer_fails_turns_are_taken_and_wait(book: Book, namer: Namer, mode: str) -> None:
    namer.mode = mode
    assert book.workshop.analyzer is not None
    book.workshop.analyzer.timeout = 0.3 if mode == "slow" else 20.0
    await book.say("Zoraide likes tea very much indeed, and her garden as well")
    for _ in range(7):
        verdict = await book.run("remask")
        assert isinstance(verdict, Later)
        assert verdict.error.startswith("analyzer_")
    await book.post("/v1/observations/flush")
    assert isinstance(await book.run("observe"), Later)
    assert (await book.states(), await marks(book)) == ({"pending": 1}, [True])
    namer.mode, book.workshop.analyzer.timeout = "good", 20.0
    namer.let_go.set()
    assert await book.workshop.analyzer.works()
    await book.run_until_idle()
    assert (await book.states(), await marks(book)) == ({"observed": 1}, [False])


async def test_a_text_that_no_model_can_read_is_masked_wholly_and_the_others_are_not(book: Book, namer: Namer) -> None:
    namer.poison = "cursed"
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"cursed": "Zoraide"}'}}
    await book.say(
        "the first one is fine", "this is cursed", {"role": "assistant", "content": "", "tool_calls": [call]}
    )
    for _ in range(4):
        assert isinstance(await book.run("remask"), Later)
    assert await marks(book) == [True] * 3
    assert isinstance(await book.run("remask"), Done)
    assert await book.texts() == ["the first one is fine", "<MASKED>", ""]
    key = await book.resources.keys.key(book.key.owner)
    sealed = json.loads(key.open((await book.turns())[2].sealed, "turn"))
    assert json.loads(sealed["calls"][0][2]) == "<MASKED>"


async def test_what_is_masked_already_is_not_masked_again(book: Book, namer: Namer) -> None:
    namer.names = ("<EMAIL_ADDRESS>", "Zoraide <PHONE_NUMBER> Quental", "PERSON")
    await book.say("ask ana@example.org or Zoraide +351 912 345 678 Quental, <PERSON> knows")
    assert isinstance(await book.run("remask"), Done)
    assert await book.texts() == ["ask <EMAIL_ADDRESS> or <PERSON> <PHONE_NUMBER> <PERSON>, <PERSON> knows"]


async def test_nothing_before_the_first_that_waits_is_held_up_and_nothing_after_it_overtakes(
    book: Book, namer: Namer
) -> None:
    await book.say("one thing about the first parcel of today", "a second thing about another parcel")
    await book.run("remask")
    namer.mode = "500"
    await book.say("Zoraide has a third thing to say of it")
    await book.write("UPDATE turns SET unmasked = false WHERE space_id = $1 AND seq = 1", book.space)
    assert isinstance(await book.run("observe"), Done)
    assert await book.states() == {"observed": 2, "pending": 1}


async def test_more_than_one_run_s_turns_go_on_and_skipped_ones_are_masked_too(book: Book, namer: Namer) -> None:
    await book.say(
        *(f"Zoraide said {number}" for number in range(25)), {"role": "system", "content": "be kind to Zoraide"}
    )
    assert isinstance(await book.run("remask"), Done)
    assert sum(await marks(book)) == 6
    assert isinstance(await book.run("remask"), Done)
    assert not any(await marks(book))
    assert not any("Zoraide" in text for text in await book.texts())
    assert (await book.states())["skipped"] == 1
    assert (await book.log()).pending_turns == 25


async def test_a_deployment_that_gives_its_models_layer_up_waits_no_longer(book: Book, namer: Namer) -> None:
    namer.mode = "500"
    await book.say("Zoraide likes tea very much indeed, and her garden as well")
    workshop = replace(book.workshop, analyzer=None)
    alone = replace(book, workshop=workshop)
    await alone.run_until_idle()
    assert (await marks(book), namer.asked) == ([False], [])
    assert await book.states() == {"observed": 1}


async def test_a_run_over_somebody_erased_meanwhile_writes_nothing(book: Book) -> None:
    await book.say("Zoraide likes tea")
    claim = await book.claim("remask")
    await book.delete_log()
    await book.run("remask", claim)
    assert await book.turns() == []


async def test_an_export_withholds_what_waits(book: Book) -> None:
    await book.say("Zoraide likes tea")
    key = await book.resources.keys.key(book.key.owner)
    whose = Target(book.space, (book.key.owner,), ((await book.log()).id,))
    shown = []
    for _ in range(2):
        async with book.resources.database.begin(book.space) as tx:
            shown += [row async for row in TURNS.export(await driver(tx), whose, {book.key.owner: key})]
        if len(shown) == 1:
            await book.run("remask")
    assert [row["text"] for row in shown] == [None, "<PERSON> likes tea"]
    assert "withheld" in shown[0]
    assert "withheld" not in shown[1]


async def test_an_erasure_while_a_model_is_slow_leaves_nothing_to_be_written(book: Book, namer: Namer) -> None:
    await book.say("Zoraide likes tea")
    (before,) = await book.turns()
    namer.mode = "slow"
    claim = await book.claim("remask")
    run = asyncio.create_task(remask(claim, book.workshop))
    async with asyncio.timeout(20):
        await namer.heard.wait()
    await accept(book.resources, Wish(book.space, "subject_request", "key_test", subject=book.key.owner))
    namer.let_go.set()
    assert isinstance(await run, Done)
    (after,) = await book.turns()
    assert (after.sealed, after.unmasked) == (before.sealed, True)
    assert await book.waiting() == ["erase_subject"]


async def test_pseudonyms_are_the_same_before_and_after_and_whoever_gives_one_meanwhile_is_not_overwritten(
    book: Book, namer: Namer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for span in ("_ASKED_AFTER", "_TRUSTED"):
        monkeypatch.setattr(auth, span, -1.0)
    rules = {"operators": {"PERSON": "pseudonym"}}
    assert (await book.client.put("/v1/policies/masking", json=rules, headers=book.key.headers)).is_success
    await book.say("my name is Ana Souza, and Zoraide knows")
    namer.mode = "slow"
    claim = await book.claim("remask")
    run = asyncio.create_task(remask(claim, book.workshop))
    async with asyncio.timeout(20):
        await namer.heard.wait()
    await book.say("my name is Bea Lima")
    namer.let_go.set()
    verdict = await run
    assert isinstance(verdict, Later)
    assert verdict.error == "pseudonyms_moved"
    namer.mode = "good"
    await book.settle(claim, verdict)
    await book.run("remask")
    assert await book.texts() == ["my name is <PERSON_1>, and <PERSON_3> knows", "my name is <PERSON_2>"]
