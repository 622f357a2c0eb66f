"""Runs of words, as they are hashed: the same however a name is spelt, and no more of them than the text has words."""

import pytest

from privacy.gram import Form, Words, phrases


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ana Clara Souza", "ask ANA  clara\nSOUZA, please"),
        ("José Núñez", "Jose\u0301 nun\u0303ez called"),
        ("O'Brien", "she is Ms. O\u2019Brien."),
        ("Jean-Luc Picard", "Jean Luc Picard"),
        ("王小明", "我叫王小明，你好"),
        ("สมชาย", "คุณสมชายมา"),
        ("Maria de Fátima da Silva Campos", "Dona Maria de Fatima da Silva Campos"),
        ("ＡＮＡ Souza", "Ana_Souza"),
    ],
)
def test_a_name_is_found_however_it_is_spelt(name: str, text: str) -> None:
    form, words = Form.of(name), Words.of(text)
    assert any(words.run(start, form.words) == form.whole for start in words.grams()[form.head])


@pytest.mark.parametrize("text", ["Ana and Souza", "Mariana Souza", "Ana B. Souza", "Souza Ana", ""])
def test_what_only_resembles_a_name_is_not_it(text: str) -> None:
    assert Form.of("Ana Souza").head not in Words.of(text).grams()


def test_a_long_name_is_told_from_another_that_begins_alike() -> None:
    form, words = Form.of("Maria de Fátima da Silva"), Words.of("Maria de Fátima da Costa")
    (start,) = words.grams()[form.head]
    assert words.run(start, form.words) != form.whole


def test_there_are_at_most_four_runs_a_word() -> None:
    words = Words.of("one two three four five " * 400)
    assert sum(map(len, words.grams().values())) <= 4 * 2_000
    assert sum(1 for _ in phrases("A B C D E " * 400)) <= 4 * 2_000


@pytest.mark.parametrize(
    ("text", "stands"), [("Will called", False), ("ask Will", True), ("it will do", False), ("ask okonkwo", True)]
)
def test_a_word_of_the_language_is_a_name_only_where_it_is_written_like_one(text: str, stands: bool) -> None:  # noqa: FBT001 - a table
    words = Words.of(text)
    word = Form.of("Will").head if "ill" in text else "okonkwo"
    (start,) = words.grams()[word]
    assert words.name(start, 1) is stands


def test_what_is_no_name_has_no_words() -> None:
    assert Form.of("!? --").words == 0


def test_a_handle_that_is_an_ordinary_word_is_nobody_s() -> None:
    assert set(phrases("You may ask Support")) & {"You", "Support"} == set()
    assert "Zoe" in set(phrases("ask Zoe"))


def test_ids_are_read_without_the_signs_around_them_and_ordinary_words_are_no_ids() -> None:
    assert set(phrases("ask (mia_li_3668), please")) == {
        "mia_li_3668",
        "ask mia_li_3668",
        "mia_li_3668 please",
        "ask mia_li_3668 please",
    }
