"""Both kinds of store keep the same promises: a folder, and a bucket of a real S3-like server."""

import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from config.package_place import place
from config.settings import Packages
from gateways.package_store import Missing, open_store
from tests.integration.packing import Counter, counter, lines

if TYPE_CHECKING:
    from conftest import Mint, Serving

    from config.settings import Settings
    from jobs.resources import Resources

NAME = "7/abc/package.1"


@pytest.fixture(scope="module")
def bucket_url() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    assert httpx.put(f"http://{host}:{port}/packages", trust_env=False).is_success
    yield f"s3://id:sec%2Fret@packages/some/prefix?endpoint=http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "bucket":
        return str(request.getfixturevalue("bucket_url"))
    return (tmp_path / "a folder" / "packages").as_uri()


@pytest.fixture
async def store(url: str) -> AsyncIterator[Any]:
    opened = open_store(place(url))
    yield opened
    await opened.remove("7")


async def test_a_file_is_read_as_it_was_written(store: Any) -> None:
    pieces = [os.urandom(size) for size in (0, 1, 5_000_000, 9_000_000, 3)]
    async with store.writing(NAME) as writer:
        for piece in pieces:
            await writer.write(piece)
    assert b"".join([part async for part in store.read(NAME)]) == b"".join(pieces)


async def test_a_write_that_breaks_leaves_nothing(store: Any) -> None:
    with contextlib.suppress(KeyError):
        async with store.writing(NAME) as writer:
            await writer.write(os.urandom(9_000_000))
            raise KeyError
    assert await store.files("7") == []
    with pytest.raises(Missing):
        await anext(store.read(NAME))


async def test_what_a_dead_writer_left_is_listed_and_removed(store: Any) -> None:
    writing = store.writing(NAME)
    writer = await writing.__aenter__()
    await writer.write(os.urandom(9_000_000))  # and the process is no more
    assert [name.startswith(NAME) for name in await store.files("7/abc")] == [True]
    await store.remove("7/abc")
    assert await store.files("7") == []
    with contextlib.suppress(FileNotFoundError, GeneratorExit):
        await writing.gen.aclose()


async def test_removing_takes_one_file_or_a_whole_folder_and_no_neighbour(store: Any) -> None:
    names = (NAME, "7/abc/package.10", "7/abcd/package.1")
    for name in names:
        async with store.writing(name) as writer:
            await writer.write(b"x")
    await store.remove(NAME)
    await store.remove(NAME)  # as often as one likes
    assert [name.split("/")[1:3] for name in await store.files("7")] == [["abc", "package.10"], ["abcd", "package.1"]]
    await store.remove("7/abc")
    assert len(await store.files("7")) == 1


@pytest.mark.parametrize("name", ["../x", "7/../../x", "/etc/passwd", "7//x", "", "7/.x", "7/x\n", "7/ü"])
async def test_a_name_leads_nowhere_else(store: Any, name: str) -> None:
    with pytest.raises(ValueError, match="made of ids"):
        await store.files(name)
    with pytest.raises(ValueError, match="made of ids"):
        async with store.writing(name):
            pass


async def test_an_export_goes_the_whole_way_through_either_store(
    settings: "Settings", resources: "Resources", mint: "Mint", serving: "Serving", url: str
) -> None:
    async with counter(settings, resources, mint, serving, url) as desk:
        assert isinstance(desk, Counter)
        await desk.say("over there")
        export, package = await desk.make()
        assert [line["text"] for line in lines(package, "data/turns.jsonl")] == ["over there"]
        assert len(await desk.files()) == 1
        await desk.write("UPDATE exports SET expires_at = clock_timestamp() WHERE space_id = $1", desk.space)
        await desk.run(export, "expire_export")
        assert await desk.files() == []


async def test_a_folder_s_own_part_of_a_link_is_not_followed(tmp_path: Path) -> None:
    store = open_store(place((tmp_path / "packages").as_uri()))
    (tmp_path / "packages" / "7").mkdir(parents=True)
    (tmp_path / "packages" / "7" / "x.part").symlink_to(tmp_path / "elsewhere")
    async with store.writing("7/x") as writer:
        await writer.write(b"x")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "url",
    [
        "packages",
        "file://host/folder",
        "file:///",
        "https://bucket.example",
        "s3://bucket?endpoint=https://s3.example",
        "s3://id@bucket?endpoint=https://s3.example",
        "s3://id:secret@bucket",
        "s3://id:secret@bucket?endpoint=s3.example",
        "s3://id:secret@bucket?endpoint=http://169.254.169.254",
        "s3://id:secret@bucket?endpoint=http://[::ffff:169.254.169.254]/",
        "s3://id:secret@bucket?endpoint=http://[fe80::1]/",
        "s3://id:secret@bucket/../x?endpoint=https://s3.example",
        "s3://id:secret@bucket?endpoint=https://s3.example&token=x",
    ],
)
def test_a_wrong_place_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="takes") as caught:
        Packages(packages_url=url)  # type: ignore[arg-type]  # as the environment has it
    assert "secret@" not in str(caught.value.errors(include_input=False))  # type: ignore[attr-defined]  # pydantic's own


async def test_nothing_but_the_endpoint_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment and the host's metadata service could say is not wanted."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                asked.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.settimeout(0)
    there = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_METADATA_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.setenv(name, there)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "environment")
    store = open_store(place(f"s3://told:secret@packages?endpoint=http://127.0.0.1:{listener.getsockname()[1]}"))
    with pytest.raises(Exception, match=r"403|ermission"):
        await store.files("7")
    listener.close()
    assert asked
    assert all(b"Credential=told/" in request for request in asked)
    with pytest.raises(BlockingIOError):
        elsewhere.accept()
    elsewhere.close()
