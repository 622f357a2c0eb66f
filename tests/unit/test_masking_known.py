"""Names and handles that the space registered are found wherever and however they stand."""

import pytest

from privacy.known import Known
from privacy.masking import mask

MIA = Known.compile(["Mia Li", "mia_li_3668", "mia.li3818@example.com", "+1 415 555 0132"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Thank you, Mia. Bye", "Thank you, <PERSON>. Bye"),
        ("MIA LI and mia li", "<PERSON> and <PERSON>"),
        ("Li, Mia; mia.li; mia_li; Mia-Li; MiaLi", "<PERSON>; <PERSON>; <PERSON>; <PERSON>; <PERSON>"),
        ("my user ID is mia_li_3668.", "my user ID is <HANDLE>."),
        ('{"user_id": "mia_li_3668"}', '{"user_id": "<HANDLE>"}'),
        (r'"{\"user_id\":\"mia_li_3668\"}"', r'"{\"user_id\":\"<HANDLE>\"}"'),
        ("mailto:mia.li3818@example.com", "mailto:<EMAIL_ADDRESS>"),
        ("Mia's seat", "<PERSON>'s seat"),
        ("Ｍｉａ\u00a0Ｌｉ", "<PERSON>"),
        ("M\u200bi\u200ba L\u200bi", "<PERSON>"),
        ("**Mia Li**", "**<PERSON>**"),
        ("call 14155550132", "call <PHONE_NUMBER>"),
        ("415.555.0132", "<PHONE_NUMBER>"),
    ],
)
def test_a_known_name_is_found_whole_in_parts_and_in_disguise(text: str, masked: str) -> None:
    assert mask(text, known=MIA).text == masked


@pytest.mark.parametrize("text", ["Miami and familia", "Liverpool", "the li battery", "mial", "familymia"])
def test_a_part_counts_only_on_word_boundaries(text: str) -> None:
    assert mask(text, known=MIA).text == text


def test_accents_do_not_matter() -> None:
    assert mask("JOSE SOUZA, josé", known=["José Sousa", "Souza"]).text == "<PERSON> <PERSON>, <PERSON>"
    assert mask("Jose\u0301 Sousa!", known=["José Sousa"]).text == "<PERSON>!"


def test_a_part_that_is_a_word_counts_only_where_it_is_written_like_a_name() -> None:
    known = ["Will May"]
    assert mask("will you come in may, or on May 5?", known=known).text == "will you come in may, or on May 5?"
    assert mask("Will you ask for Will? will may", known=known).text == "Will you ask for <PERSON>? <PERSON>"


def test_particles_are_no_parts() -> None:
    assert mask("o livro da escola de von", known=["Ana da Silva", "Max von Bohr"]).text == "o livro da escola de von"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("我叫王小明谢谢", "我叫<PERSON>谢谢"),
        ("小明你好", "<PERSON>你好"),
        ("김민수씨 안녕하세요", "<PERSON>씨 안녕하세요"),
        ("山田太郎様", "<PERSON>様"),
    ],
)
def test_names_in_scripts_without_spaces_are_found_without_boundaries(text: str, masked: str) -> None:
    assert mask(text, known=["王小明", "김민수", "山田 太郎"]).text == masked


def test_a_name_that_is_a_word_of_a_placeholder_does_not_eat_placeholders() -> None:
    once = mask("Person wrote to ana@example.com", known=["Person", "email"]).text
    assert once == "<PERSON> wrote to <EMAIL_ADDRESS>"
    assert mask(once, known=["Person", "email"]).text == once


@pytest.mark.parametrize("names", [[""], ["", " ", "-", "@", "\u200b", "a"], ["."], ["1"]])
def test_empty_and_odd_names_find_nothing(names: list[str]) -> None:
    assert mask("a plain text, 1 - 2. @ b", known=names).text == "a plain text, 1 - 2. @ b"


def test_thousands_of_names_are_compiled_once() -> None:
    syllables = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "xa", "wy"]
    firsts = [a + b + c for a in syllables for b in syllables for c in syllables]
    many = Known.compile([f"{name.title()} {name[::-1].title()}" for name in firsts])
    assert mask("hello Bafiko, Bafigo Ogifab!", known=many).text == "hello Bafiko, <PERSON>!"
    assert mask("hello bafigoogifab", known=many).text == "hello <PERSON>"
