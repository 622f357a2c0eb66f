"""Words and phrases found in a log, in any script."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from memory.observation import Kind, Line, Priority
from memory.search import search, terms

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def log(*texts: str) -> list[Line]:
    return [
        Line(number, text, Kind.EVENT, Priority.MEDIUM, NEW_YEAR + timedelta(days=number), 9)
        for number, text in enumerate(texts, 1)
    ]


def found(query: str, *texts: str, limit: int = 10) -> list[int]:
    return [line.id for line, _ in search(log(*texts), query, limit)]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("porto", "Ana moved to PORTO."),
        ("São Paulo", "ana foi a sao paulo"),
        ("sao paulo", "Ana foi a São Paulo"),
        ("nino", "el Nin\u0303o vive aquí"),
        ("straße", "in der STRASSE"),
        ("１２３", "order 123"),
        ("里斯本", "安娜住在里斯本。"),
        ("斯", "安娜住在里斯本。"),
        ("住在", "安娜住在里斯本。"),
        ("ポルト", "アナはポルトに住んでいます"),
        ("포르투", "아나는 포르투에 산다"),
        ("ลิสบอน", "แอนนาอาศัยอยู่ในลิสบอน"),
        ("लिस्बन", "अना लिस्बन में रहती है"),
        ("ёлка", "красивая елка"),
        ("αθήνα", "Ζει στην ΑΘΗΝΑ"),
        ("مدينة", "يعيش في مَدِينَة كبيرة"),
        ("boats", "Ana owns a boat"),
        ("boat", "Ana owns two boats"),
        ("iPhone买", "安娜买了iPhone15"),
        ("ana@example.org", "write to ana@example.org today"),
        ("order-7", "the order 7 left"),
    ],
)
def test_a_word_is_found_in_any_script(query: str, text: str) -> None:
    assert found(query, "Rui hat nichts damit zu tun", text) == [2]


@pytest.mark.parametrize("query", ["", " ", "?!", "\n", '""', "…"])
def test_a_query_without_words_finds_nothing(query: str) -> None:
    assert found(query, "Ana moved to Porto.", "", "?!") == []


def test_what_does_not_hold_a_word_is_not_found() -> None:
    assert found("museum", "Ana moved to Porto.") == []
    assert found("port", "Ana moved to a portuguese town") == []
    assert found("東京", "安娜住在里斯本。") == []
    assert found("tea", "Ana joined the team") == []
    assert found("porto") == []


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    texts = ["Ana likes tea", "Ana likes milk", "Ana likes soup", "Rui repairs the harpsichord"]
    assert found("Ana harpsichord", *texts)[0] == 4


def test_more_words_of_the_query_count_more() -> None:
    assert found("red boat", "a red house", "a red boat", "a blue boat")[0] == 2


def test_words_side_by_side_come_first() -> None:
    assert found("old harbour", "the harbour has an old boat", "the boat at the old harbour")[0] == 2


def test_a_short_line_beats_a_long_one() -> None:
    assert found("porto", "Porto is where Ana and Rui and all their many friends went once", "Ana likes Porto")[0] == 2


@pytest.mark.parametrize("query", ['"old harbour"', "“old harbour”", "«Old  Harbour»", 'boat "old harbour"'])
def test_a_phrase_in_quotes_must_stand_as_it_is(query: str) -> None:
    assert found(query, "the harbour has an old boat", "the boat at the old\nharbour") == [2]


def test_a_phrase_of_chinese_must_stand_as_it_is() -> None:
    assert found("「里斯本」", "安娜住在里斯本。", "里斯和斯本") == [1]


def test_equals_come_newest_first_and_no_more_than_asked_for() -> None:
    same = ["Ana moved to Porto"] * 5
    assert found("porto", *same) == [5, 4, 3, 2, 1]
    assert found("porto", *same, limit=2) == [5, 4]
    assert found("porto", *same, limit=0) == []
    assert found("porto", *same, limit=-1) == []


def test_scores_are_positive_and_falling() -> None:
    scores = [score for _, score in search(log("porto porto", "porto", "a porto b c d"), "porto", 10)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_terms_cut_unspaced_scripts_into_pairs() -> None:
    assert terms("Ana住在里斯本 5号") == ["ana", "住在", "在里", "里斯", "斯本", "5", "号"]


def test_thousands_of_lines_are_searched_at_once() -> None:
    lines = log(*(f"Ana keeps letter {number} in drawer {number % 97} of the café" for number in range(5_000)))
    began = time.process_time()
    assert len(search(lines, "letter 4711 drawer cafe " * 50, 10)) == 10
    assert time.process_time() - began < 5
