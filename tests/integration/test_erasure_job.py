"""The job that erases: batch by batch, through crashes, until nothing is found; and never a success before."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.verify import check_certificate
from gateways import signing
from jobs import erase as job
from jobs.erase import erase
from jobs.verdict import Done, Later, Nothing
from models import erasing as erasures
from models import registry, release, work
from models.database import driver
from models.work import Superseded
from privacy import receipt_proof
from tests.integration.erasing import WAITS, accept, claimed, finish, run, seal, stands
from tests.integration.logbook import Shelf

Opened = Callable[..., Any]


@pytest.fixture
def opened(settings: Any, resources: Any, mint: Any, serving: Any, client: Any) -> Opened:
    return Shelf(settings, resources, mint, serving, client).opened


async def test_a_person_is_erased_and_the_certificate_says_what_went(opened: Opened) -> None:
    async with opened() as book:
        await book.say("My parcel is blue", "My parcel is late")
        await book.run_until_idle()
        erasure = await accept(book.resources, book.space, book.key.owner, fenced=False)
        assert isinstance(await finish(book.workshop, book.space), Done)
        now = await stands(book.resources, book.space, erasure)
        assert (now.state, now.finished_at is None) == ("completed", False)
        assert now.certificate is not None
        said, signature = now.certificate["document"], now.certificate["signature"]
        public = (await signing.load(book.resources.keys)).public
        assert receipt_proof.is_signed(said, signature, public)
        assert not receipt_proof.is_signed({**said, "keys_destroyed": 2}, signature, public)
        assert said["rows"].items() >= {"turns": 2, "observations": 2, "conversations": 1, "handles": 1}.items()
        assert set(said["rows"]) == {one.name for one in registry.DATA_SETS}
        assert said["scan"]["clean"]
        assert said["scan"]["found"] == {}
        assert said["registry"]["version"] == registry.version()
        assert said["receipt"]["proof"]["receipt"]["counts"] == said["rows"]
        assert check_certificate(now.certificate, public) == []
        told_otherwise = json.loads(json.dumps(now.certificate))
        told_otherwise["document"]["receipt"]["proof"]["receipt"]["counts"]["turns"] = 1
        assert len(check_certificate(told_otherwise, public)) == 2
        async with book.resources.database.begin(book.space) as tx:
            connection = await driver(tx)
            told = await connection.fetch("SELECT event, ids FROM announcements WHERE space_id = $1", book.space)
            receipt = await connection.fetchrow("SELECT action, counts FROM receipts WHERE id = $1", now.receipt)
        assert [(row["event"], row["ids"]) for row in told] == [("erasure.completed", {"erasure": str(erasure)})]
        assert (receipt["action"], receipt["counts"]) == ("erasure.verified", said["rows"])
        assert (await work_states(book)) == ["done"]


async def work_states(book: Any) -> list[str]:
    return [row.state for row in await book.work("ready", "claimed", "done", "dead") if row.kind == "erase_subject"]


async def test_it_is_not_completed_before_its_receipt_is_sealed(opened: Opened) -> None:
    async with opened() as book:
        await book.say("My parcel is blue")
        erasure = await accept(book.resources, book.space, book.key.owner)
        for _ in range(2):
            assert await run(book.workshop, book.space) == WAITS
            waiting = await stands(book.resources, book.space, erasure)
            assert (waiting.state, waiting.certificate) == ("verifying", None)
        assert [row.kind for row in await book.work("ready")].count("seal") == 1
        await seal(book.resources, book.space)
        assert isinstance(await run(book.workshop, book.space), Done)
        done = await stands(book.resources, book.space, erasure)
        assert (done.state, done.receipt) == ("completed", waiting.receipt)  # one receipt, however long it took


async def test_what_is_left_is_an_error_that_is_tried_again_and_never_a_success(opened: Opened) -> None:
    async with opened() as book:
        await book.say("My parcel is blue")
        erasure, subject = await accept(book.resources, book.space, book.key.owner), book.key.owner
        name = f"left_{erasure.hex[:12]}"
        await book.resources.database.pool.execute(f"CREATE TABLE {name} (id bigint, whose uuid)")
        try:
            await book.resources.database.pool.execute(f"INSERT INTO {name} VALUES (1, $1)", subject)  # noqa: S608 - made here
            for _ in range(2):
                assert await run(book.workshop, book.space) == Later(None, "residue")
                left = await stands(book.resources, book.space, erasure)
                assert (left.state, left.progress) == ("incomplete", {"found": {f"{name}.whose": 1}})
                assert (left.receipt, left.certificate, left.finished_at) == (None, None, None)
        finally:
            await book.resources.database.pool.execute(f"DROP TABLE {name}")
        assert isinstance(await finish(book.workshop, book.space), Done)
        assert (await stands(book.resources, book.space, erasure)).state == "completed"


async def test_a_key_that_lives_on_keeps_it_from_being_completed(opened: Opened) -> None:
    async with opened() as book:
        erasure = await accept(book.resources, book.space, book.key.owner)
        await book.resources.keys.make(book.key.owner, "subject")
        assert await run(book.workshop, book.space) == Later(None, "residue")
        assert (await stands(book.resources, book.space, erasure)).progress == {"found": {"keys": 1}}
        await book.resources.keys.pool.execute("DELETE FROM wrapped_keys WHERE id = $1", book.key.owner)


class Struck(Exception):
    """The worker died here."""


@pytest.mark.parametrize("after", [1, 3, 5, 8])
async def test_a_worker_may_die_after_any_batch(opened: Opened, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    async with opened() as book:
        await book.say(*(f"My parcel is {number}" for number in range(9)))
        await book.run_until_idle()
        erasure = await accept(book.resources, book.space, book.key.owner, fenced=False)
        monkeypatch.setattr(job, "_BATCH", 2)
        counted, batches = erasures.count, 0

        async def dies(*asked: Any) -> int:
            nonlocal batches
            batches += 1
            if batches == after:
                raise Struck
            return await counted(*asked)

        monkeypatch.setattr(erasures, "count", dies)
        claim = await claimed(book.resources, book.space)
        with pytest.raises(Struck):
            await erase(claim, book.workshop)
        monkeypatch.setattr(erasures, "count", counted)
        async with book.resources.database.pool.acquire() as connection:
            await release.give_back(connection, claim)
        assert isinstance(await finish(book.workshop, book.space), Done)
        now = await stands(book.resources, book.space, erasure)
        # Each batch is counted in the transaction that deletes it, so nothing is counted twice or missed.
        assert now.counts.items() >= {"turns": 9, "observations": 9, "logs": 1, "subjects": 1}.items()


async def test_whoever_lost_the_claim_deletes_nothing_any_more(opened: Opened) -> None:
    async with opened() as book:
        await book.say("My parcel is blue")
        await accept(book.resources, book.space, book.key.owner, fenced=False)
        lost = await claimed(book.resources, book.space)
        await book.resources.database.pool.execute("UPDATE work SET epoch = epoch + 1 WHERE id = $1", lost.id)
        with pytest.raises(Superseded):
            await erase(lost, book.workshop)
        assert len(await book.turns()) == 1


async def test_two_workers_on_one_erasure_do_no_harm(opened: Opened) -> None:
    async with opened() as book:
        await book.say(*(f"My parcel is {number}" for number in range(20)))
        erasure = await accept(book.resources, book.space, book.key.owner, fenced=False)
        claim = await claimed(book.resources, book.space)
        ends = await asyncio.gather(*(erase(claim, book.workshop) for _ in range(2)), return_exceptions=True)
        assert ends == [WAITS, WAITS]
        now = await stands(book.resources, book.space, erasure)
        assert (now.state, now.counts["turns"]) == ("verifying", 20)


async def test_an_erasure_that_is_not_there_or_done_is_nothing_to_do(opened: Opened) -> None:
    async with opened() as book:
        erasure = await accept(book.resources, book.space, book.key.owner)
        await finish(book.workshop, book.space)
        async with book.resources.database.begin(book.space) as tx:
            from jobs.letters import erase_letter

            await work.add(await driver(tx), erase_letter(book.space, erasure))
        assert isinstance(await run(book.workshop, book.space), Nothing)
