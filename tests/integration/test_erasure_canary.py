"""Erased in the middle of everything: afterwards no word of theirs stands anywhere, and a neighbour has changed by no byte."""

import asyncio
import base64
import contextlib
import io
import json
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
import structlog
from redis.asyncio import Redis

from config.settings import Packages
from gateways import signing
from gateways.package_store import open_store
from jobs import residue
from models import erasing as erasures
from models import schema
from models.content import open_line, open_turn
from models.database import driver
from models.observation import Observation
from models.residue import KEPT
from models.turn import StoredTurn
from privacy import receipt_proof
from tests.integration.canary import Canary
from tests.integration.dumping import postgres_tool
from tests.integration.logbook import Shelf, changed, token

if TYPE_CHECKING:
    from conftest import Servers

SEEDS = int(os.environ.get("AFTERTURN_SEEDS", "6"))
TOGETHER = 3
STEPS = 110

Built = Callable[[int], Any]


@pytest.fixture
def built(settings: Any, resources: Any, mint: Any, serving: Any, client: Any, tmp_path: Path) -> Built:
    @asynccontextmanager
    async def build(seed: int) -> AsyncIterator[Canary]:
        packages = Packages(packages_url=(tmp_path / f"packages-{seed}").as_uri())
        place = packages.place()
        assert place is not None
        mine = replace(
            resources, settings=changed(settings, packages_url=packages.packages_url), packages=open_store(place)
        )
        key = await mint(
            scopes=("turns:write", "memory:read", "operator", "profiles:write"),
            owner="operator",
            admin=True,
            allow_impersonation=True,
        )
        async with Shelf(settings, mine, mint, serving, client).opened(key=key, reflector_threshold=120) as book:
            canary = Canary(book, book.workshop, random.Random(seed), guest=seed % 2 == 1)
            try:
                yield canary
            finally:
                await canary.stop()

    return build


async def copied(resources: Any) -> dict[str, bytes]:
    """Every table of both databases, as a dump has them."""
    found = {}
    for name, pool in (("data", resources.database.pool), ("keys", resources.keys.pool)):
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT set_config('afterturn.space', 'every', true)")
            for table in sorted({column.table for column in await schema.columns(connection)}):
                out = io.BytesIO()
                await connection.copy_from_table(table, output=out)
                found[f"{name}.{table}"] = out.getvalue()
    return found


async def in_redis(resources: Any) -> bytes:
    async with Redis.from_url(resources.settings.stores.redis_url.get_secret_value()) as redis:
        return b"\n".join([text async for keys in residue._pages(redis) for text in await residue._texts(redis, keys)])


def stored(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {f"file {path.name}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forms(word: str) -> list[bytes]:
    """How a word could stand somewhere."""
    plain = word.encode()
    return [plain, plain.hex().encode(), base64.b64encode(plain), plain[::-1]]


async def neighbour_s_rows(resources: Any, subject: UUID) -> dict[str, list[str]]:
    """Byte for byte, in whatever table names the neighbour or their logs."""
    found = {}
    async with resources.database.begin_everywhere() as tx:
        connection = await driver(tx)
        columns = {(one.table, one.name) for one in await schema.columns(connection)}
        for table in sorted({table for table, _ in columns}):
            ways = ["subject_id = $1"] if (table, "subject_id") in columns else []
            if (table, "log_id") in columns:
                ways.append("log_id IN (SELECT id FROM logs WHERE subject_id = $1)")
            if ways:
                query = f"SELECT t::text FROM {table} t WHERE {' OR '.join(ways)} ORDER BY 1"  # noqa: S608 - names of the catalogue
                found[table] = [row[0] for row in await connection.fetch(query, subject)]
    return found


async def opened_words(canary: Canary, table: Any, subject: UUID, opens: Any) -> Counter[str]:
    key = await canary.book.resources.keys.key(subject)
    rows = [row for row in await canary.book.rows(table) if row.subject_id == subject]
    return Counter(word for row in rows for word in opens(row, key).text.replace(".", " ").split() if "tok-" in word)


async def lived_through(built: Built, seed: int) -> tuple[Canary, list[str]]:
    """One seed: steps, rest, and everything that is wrong afterwards."""
    async with built(seed) as canary:
        quiet = token()
        quiet_book = canary.book
        answer = await quiet_book.client.post(
            "/v1/turns",
            json={
                "agent": "support",
                "conversation_id": "q",
                "turns": [{"role": "user", "content": f"My {quiet} parcel"}],
            },
            headers={**quiet_book.key.headers, "X-Canonical-User": "quiet"},
        )
        assert answer.status_code == 202
        neighbour = await canary.subject("quiet")
        await canary.begin()
        while canary.runs:
            await canary.go_on()
        before = await neighbour_s_rows(canary.book.resources, neighbour)
        assert before["observations"]
        await canary.say()
        with structlog.testing.capture_logs() as logs:
            for _ in range(STEPS):
                await canary.step()
            await canary.settle()
        wrong = await problems(canary, logs)
        if await neighbour_s_rows(canary.book.resources, neighbour) != before:
            wrong.append("the quiet neighbour changed")
        return canary, wrong


async def problems(canary: Canary, logs: list[Any]) -> list[str]:
    """Where something of the erased still stands, and what else is not as it must be."""
    resources, subject = canary.book.resources, canary.erased
    words = [*canary.words, *([] if canary.later else [canary.victim])]  # who came back has the name again, sealed
    places = {
        **await copied(resources),
        "redis": await in_redis(resources),
        "logs": json.dumps(logs, default=str).encode(),
    }
    places |= stored(Path(canary.workshop.packages.root))  # type: ignore[union-attr]  # a folder's
    wrong = [
        f"{word} in {name}"
        for name, text in places.items()
        for word in [*words, canary.victim]
        for form in forms(word)
        if form in text
    ]
    ids = (str(subject).encode(), subject.hex.encode())
    kept = {"keys.ledger", *(f"data.{table}" for table in KEPT)}
    wrong += [
        f"the id in {name}"
        for name, text in places.items()
        if name not in kept | {"logs"}
        for one in ids
        if one in text
    ]
    async with resources.database.begin(canary.book.space) as tx:
        assert canary.erasure is not None
        erasing = await erasures.find(await driver(tx), canary.book.space, canary.erasure)
    assert erasing is not None
    if erasing.state != "completed" or erasing.certificate is None:
        return [*wrong, f"the erasure is {erasing.state}: {erasing.progress}"]
    public = (await signing.load(resources.keys)).public
    if not receipt_proof.is_signed(erasing.certificate["document"], erasing.certificate["signature"], public):
        wrong.append("the certificate is not signed")
    again = await residue.look(resources, erasing.target)
    wrong += [f"left in {place}" for place in again.found]
    folders = [
        folder for one in residue.DATA_SETS if isinstance(one, residue.Filed) for folder in one.folders(erasing.target)
    ]
    wrong += [f"file {name}" for folder in folders for name in await resources.packages.files(folder)]
    return wrong + await the_loud(canary)


async def the_loud(canary: Canary) -> list[str]:
    """The loud neighbour has every word of theirs, each once, and none of the erased."""
    subject = await canary.subject(canary.loud)
    said = await opened_words(canary, StoredTurn, subject, open_turn)
    noted = await opened_words(canary, Observation, subject, open_line)
    wrong = [f"{word} of the loud was said {said[word]} times" for word in canary.loud_words if said[word] != 1]
    wrong += [f"{word} of the loud was not noted" for word in canary.loud_words if not noted[word]]
    return wrong + [f"{word} of the erased is in the loud's log" for word in canary.words if noted[word] or said[word]]


_SPOKEN = re.compile(rb"tok-[b-z]{5}|746f6b2d(?:[67][0-9a-f]){5}")  # a token, and its bytes in hex


def spoken(text: bytes) -> set[str]:
    """The tokens that a text holds."""
    found = {one.decode() for one in _SPOKEN.findall(text)}
    return {one if one.startswith("tok-") else bytes.fromhex(one).decode() for one in found}


def readable(servers: "Servers") -> dict[str, set[str]]:
    """Every token that can be read without a key: in dumps of both databases, and in each file of every server, WAL included."""
    found = {
        name: spoken(postgres_tool(server.url, "pg_dump", "--enable-row-security"))
        for name, server in (("pg_dump of the data", servers.data), ("pg_dump of the keys", servers.keys))
    }
    for server in (servers.data, servers.keys, servers.valkey):
        for path in server._folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # a server's files come and go
                if path.is_file():
                    found[str(path)] = spoken(path.read_bytes())
    return found


@pytest.mark.timeout(300 + 10 * SEEDS)
async def test_no_word_of_theirs_stands_anywhere_afterwards(built: Built, servers: "Servers") -> None:
    seen: Counter[str] = Counter()
    said: set[str] = set()
    for first in range(0, SEEDS, TOGETHER):
        seeds = range(first, min(first + TOGETHER, SEEDS))
        for seed, (canary, wrong) in zip(
            seeds, await asyncio.gather(*(lived_through(built, seed) for seed in seeds)), strict=True
        ):
            assert not wrong, f"seed {seed}: {wrong[:10]}"
            assert canary.words
            seen += canary.seen
            said |= {canary.victim, canary.loud, *canary.words, *canary.later, *canary.loud_words}
    assert seen["erase_subject Done"] == SEEDS
    assert seen["observe Done"] > SEEDS
    assert sum(number for name, number in seen.items() if name.startswith("accepted over")) == SEEDS
    left = {place: words & said for place, words in (await asyncio.to_thread(readable, servers)).items()}
    assert len(left) > 100
    assert not {place: words for place, words in left.items() if words}


def test_a_token_is_found_in_a_dump_plain_and_in_hex() -> None:
    word = token()
    assert spoken(f"a {word}b \\\\x00{word.encode().hex()}00".encode()) == {word}
