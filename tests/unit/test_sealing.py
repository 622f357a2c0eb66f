"""Sealed text opens with its own key, for its own purpose, unaltered, or not at all."""

import os
from uuid import uuid4

import pytest

from models.sealed import SealedColumn
from privacy import hashing
from privacy.sealing import SealingKey, Unreadable, unwrap, wrap


@pytest.fixture
def key() -> SealingKey:
    return SealingKey(uuid4(), os.urandom(32))


def test_what_is_sealed_opens_again(key: SealingKey) -> None:
    for text in ("", "I moved to Porto", "我搬到了波尔图", "👨‍👩‍👧", "a" * 300_000):
        assert key.open(key.seal(text, "turn"), "turn") == text


def test_the_same_text_never_seals_to_the_same_bytes(key: SealingKey) -> None:
    assert len({key.seal("yes", "turn") for _ in range(100)}) == 100


def test_another_purpose_does_not_open_it(key: SealingKey) -> None:
    with pytest.raises(Unreadable):
        key.open(key.seal("ana@example.com", "handle"), "turn")


def test_another_person_s_key_does_not_open_it(key: SealingKey) -> None:
    with pytest.raises(Unreadable):
        SealingKey(uuid4(), os.urandom(32)).open(key.seal("secret", "turn"), "turn")


def test_every_flipped_bit_is_noticed(key: SealingKey) -> None:
    sealed = key.seal("short", "turn")
    for at in range(len(sealed)):
        altered = bytearray(sealed)
        altered[at] ^= 1
        with pytest.raises(Unreadable):
            key.open(bytes(altered), "turn")


def test_a_wrapped_key_opens_under_its_master_and_id_alone() -> None:
    master, key_id, secret = os.urandom(32), uuid4(), os.urandom(32)
    wrapped = wrap(master, key_id, secret)
    assert unwrap(master, key_id, wrapped) == secret
    for other_master, other_id in ((os.urandom(32), key_id), (master, uuid4())):
        with pytest.raises(Unreadable):
            unwrap(other_master, other_id, wrapped)


def test_digests_are_equal_for_equal_texts_under_one_key_only(key: SealingKey) -> None:
    other = SealingKey(uuid4(), os.urandom(32))
    assert key.digest("a", "message") == key.digest("a", "message")
    assert (
        len(
            {
                key.digest("a", "message"),
                key.digest("a", "handle"),
                key.digest("b", "message"),
                other.digest("a", "message"),
            }
        )
        == 4
    )


@pytest.mark.parametrize("plain", ["plain text", b"plain bytes", b"\x01short", 5])
def test_a_sealed_column_takes_nothing_that_was_not_sealed(plain: object) -> None:
    with pytest.raises(TypeError):
        SealedColumn().process_bind_param(plain, None)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("phone", "+351 912-345-678", "+351912345678"),
        ("phone", "（＋３５１）９１２３４５６７８", "+351912345678"),
        ("email", " Ana.Lima@Example.com", "ana.lima@example.com"),
    ],
)
def test_two_spellings_of_a_handle_fold_to_one(kind: str, one: str, other: str) -> None:
    assert hashing.fold(kind, one) == hashing.fold(kind, other)


def test_account_ids_differ_by_case() -> None:
    assert hashing.fold("account", "Ab") != hashing.fold("account", "ab")
