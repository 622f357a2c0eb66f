"""A package at rest: opens to what it was, in the memory of a chunk; altered, moved or cut short it does not open."""

import os
from uuid import uuid4

import pytest

from privacy.package_cipher import CHUNK, Opener, Sealer, Truncated
from privacy.sealing import SealingKey, Unreadable

TAG = 16


@pytest.fixture(scope="module")
def key() -> SealingKey:
    return SealingKey(uuid4(), os.urandom(32))


def sealed(key: SealingKey, content: bytes, package: str = "one", step: int = 100_000) -> bytes:
    sealer = Sealer(key, package)
    return b"".join(sealer.seal(content[at : at + step]) for at in range(0, len(content), step)) + sealer.close()


def opened(key: SealingKey, file: bytes, package: str = "one", step: int = 77_777) -> bytes:
    opener = Opener(key, package)
    return b"".join(opener.open(file[at : at + step]) for at in range(0, len(file), step)) + opener.close()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5])
def test_any_size_opens_to_what_it_was(key: SealingKey, size: int) -> None:
    content = os.urandom(size)
    file = sealed(key, content)
    assert opened(key, file) == content
    assert opened(key, file, step=1 + len(file)) == content
    assert content[:64] not in file or size < 8


@pytest.mark.parametrize("size", [0, 10, CHUNK, 3 * CHUNK + 5])
def test_a_package_that_ends_early_is_no_package(key: SealingKey, size: int) -> None:
    file = sealed(key, os.urandom(size))
    head = len(file) - size - TAG * max(1, -(-size // CHUNK))
    ends = {0, 1, head - 1, head, len(file) - TAG - 1, len(file) - 1, *range(head, len(file), CHUNK + TAG)}
    for end in ends - {len(file)}:
        with pytest.raises((Truncated, Unreadable)):
            opened(key, file[: max(0, end)])


def test_it_is_not_longer_than_it_was(key: SealingKey) -> None:
    with pytest.raises((Truncated, Unreadable)):
        opened(key, sealed(key, os.urandom(CHUNK)) + b"more")


def test_no_byte_can_be_altered_and_no_chunk_moved(key: SealingKey) -> None:
    file = sealed(key, os.urandom(3 * CHUNK))
    for at in (0, 5, 6, 7, 20, 120, len(file) // 2, len(file) - 1):
        altered = bytearray(file)
        altered[at] ^= 1
        with pytest.raises((Truncated, Unreadable)):
            opened(key, bytes(altered))
    size = CHUNK + TAG
    head, first, second, last = file[: -3 * size], file[-3 * size : -2 * size], file[-2 * size : -size], file[-size:]
    for moved in (head + second + first + last, head + first + first + last, head + first + last, head + last):
        with pytest.raises((Truncated, Unreadable)):
            opened(key, moved)


def test_only_its_person_s_key_opens_it_and_only_as_itself(key: SealingKey) -> None:
    file = sealed(key, b"text")
    with pytest.raises(Unreadable):
        opened(SealingKey(uuid4(), os.urandom(32)), file)
    with pytest.raises(Unreadable):
        opened(key, file, package="another")


def test_a_large_package_takes_the_memory_of_a_chunk(key: SealingKey) -> None:
    sealer, opener = Sealer(key, "one"), Opener(key, "one")
    for _ in range(200):
        opener.open(sealer.seal(os.urandom(100_000)))
        assert len(sealer._waiting) <= CHUNK
        assert len(opener._waiting) <= CHUNK + TAG
