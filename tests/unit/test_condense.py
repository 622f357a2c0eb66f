"""The reflector without a model: a smaller log in which nothing is lost silently."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from memory import tokens
from memory.condense import COMFORTABLE, reflect
from memory.observation import Interval, Kind, Line, Priority, Reflection

MAY = datetime(2025, 5, 5, 9, tzinfo=UTC)
MUCH = 1_000_000


def line(
    number: int,
    text: str,
    *,
    day: int = 0,
    kind: Kind = Kind.EVENT,
    priority: Priority = Priority.MEDIUM,
    days: Interval | None = None,
    supersedes: int | None = None,
) -> Line:
    at = MAY + timedelta(days=day, seconds=number)
    return Line(number, text, kind, priority, at, tokens.count(text), (number,), days, supersedes)


def on(year: int, month: int, day: int) -> Interval:
    return Interval(date(year, month, day), date(year, month, day))


def size(reflection: Reflection) -> int:
    return sum(tokens.count(each.text) for each in reflection.lines)


def covered(reflection: Reflection) -> list[int]:
    """The ids of all old lines that the reflection accounts for, as often as it does."""
    cited = [source for each in reflection.lines for source in each.sources]
    return sorted(cited + [dropped.id for dropped in reflection.dropped])


def why(reflection: Reflection) -> dict[int, str]:
    return {dropped.id: dropped.reason for dropped in reflection.dropped}


def many(count: int, *, priority: Priority = Priority.MEDIUM, start: int = 1) -> list[Line]:
    """Lines that share no word, one a day."""
    return [
        line(
            number,
            f"Iris: planted cedar{number} beside chapel{number} with farmer{number}",
            day=number,
            priority=priority,
        )
        for number in range(start, start + count)
    ]


def test_lines_that_say_different_things_stand_as_they_were() -> None:
    lines = [line(1, "Iris: adopted grey cat called Moss"), line(2, "Tomas: repaired mill wheel in Trogir")]
    reflection = reflect(lines, MUCH)
    assert [(each.text, each.sources) for each in reflection.lines] == [(one.text, (one.id,)) for one in lines]
    assert [(each.kind, each.priority, each.observed_at) for each in reflection.lines] == [
        (one.kind, one.priority, one.observed_at) for one in lines
    ]
    assert reflection.dropped == ()


def test_an_exact_repetition_of_the_same_time_goes_and_the_older_line_stays() -> None:
    reflection = reflect([line(1, "Iris: likes green tea"), line(2, "iris:  LIKES green tea!", day=3)], MUCH)
    assert [each.sources for each in reflection.lines] == [(1,)]
    assert why(reflection) == {2: "duplicate"}


def test_of_two_repetitions_the_weightier_stays() -> None:
    reflection = reflect([line(1, "Iris: likes tea"), line(2, "Iris: likes tea", priority=Priority.HIGH)], MUCH)
    assert [each.priority for each in reflection.lines] == [Priority.HIGH]
    assert why(reflection) == {1: "duplicate"}


def test_nearly_the_same_words_of_one_day_are_one_fact() -> None:
    lines = [
        line(1, "Iris adopted a grey cat named Moss from the shelter in Split"),
        line(2, "Iris adopted the grey cat, named Moss, from a shelter in Split."),
    ]
    reflection = reflect(lines, MUCH)
    assert len(reflection.lines) == 1
    assert why(reflection) == {2: "duplicate"}


def test_what_was_true_in_two_periods_stays_two_facts() -> None:
    lines = [
        line(1, "Iris: lives in Split", days=Interval(date(2019, 1, 1), date(2020, 12, 31))),
        line(2, "Iris: lives in Split", day=1, days=Interval(date(2024, 1, 1), date(2025, 12, 31))),
        line(3, "Tomas: works at mill"),
        line(4, "Tomas: works at mill", day=200),
    ]
    reflection = reflect(lines, MUCH)
    assert covered(reflection) == [1, 2, 3, 4]
    assert [each.sources for each in reflection.lines if "Split" in each.text] == [(1,), (2,)]
    assert [each.sources for each in reflection.lines if "mill" in each.text] == [(3,), (4,)]


def test_the_same_of_the_same_time_is_one_fact_on_whatever_day_it_came_up() -> None:
    lines = [
        line(1, "Iris: sold wooden boat to Luka in Omis harbour", days=on(2025, 4, 1)),
        line(2, "Iris: sold her wooden boat to Luka, Omis harbour", day=9, days=on(2025, 4, 1)),
    ]
    assert why(reflect(lines, MUCH)) == {2: "duplicate"}


def test_what_differs_by_a_number_is_no_duplicate() -> None:
    lines = [line(1, "Iris: paid 40 euros to the harbour office"), line(2, "Iris: paid 45 euros to the harbour office")]
    texts = " ".join(each.text for each in reflect(lines, MUCH).lines)
    assert "40" in texts
    assert "45" in texts


def test_a_correction_takes_the_place_of_what_it_corrects() -> None:
    lines = [
        line(1, "Iris: sister's name is Maria"),
        line(2, "Iris: sister's name is Marta, not Maria", day=1, kind=Kind.CORRECTION, supersedes=1),
    ]
    reflection = reflect(lines, MUCH)
    assert why(reflection) == {1: "superseded"}
    assert [each.sources for each in reflection.lines] == [(2,)]


def test_prose_becomes_terse_and_its_dates_absolute() -> None:
    told = line(1, "Iris told the others that she had sold her old boat to the ferryman last week.")
    (each,) = reflect([told], told.tokens).lines
    assert "sold" in each.text
    assert "28 April–4 May 2025" in each.text
    assert not {"the", "that", "had", "her", "last"} & set(each.text.split())
    assert each.sources == (1,)


def test_a_log_below_its_threshold_loses_only_what_it_says_twice() -> None:
    told = [
        line(1, "Iris told the others that she had sold her old boat to the ferryman last week."),
        line(2, "Iris told the others that she had sold her old boat to the ferryman."),
        line(3, "Iris told the others that she had sold her old boat to the ferryman", day=1),
    ]
    reflection = reflect(told, sum(each.tokens for each in told) + 1)
    assert [each.text for each in reflection.lines] == [told[0].text, told[1].text]
    assert why(reflection) == {3: "duplicate"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Iris: order 1001 of green tea reached the harbour depot",
            "Iris: order 1002 of green tea reached the harbour depot",
        ),
        ("Iris: lent Ana 20 € for the night train to Split", "Iris: lent Bo 20 € for the night train to Split"),
        ("iris: lent ana 20 for the night train to split", "iris: lent bo 20 for the night train to split"),
        ("Iris: lent Al 20 € for the night train", "Iris: lent No 20 € for the night train"),
        ("Iris: paid 20 € for the blue boat", "Iris: paid 20 $ for the blue boat"),
        ("Iris: the pump lost 3.5 bar over the night", "Iris: the pump lost 35 bar over the night"),
        ("Iris: yesterday at -5 degrees the pump froze", "Iris: yesterday at 5 degrees the pump froze"),
        ("Iris: lent Ana 20 € and Bo 30 € for the train", "Iris: lent Ana 30 € and Bo 20 € for the train"),
        ("Iris: Ana lent Bo the old red boat", "Iris: Bo lent Ana the old red boat"),
        ("Iris: eats fish at the harbour on Fridays", "Iris: does not eat fish at the harbour on Fridays"),
        ("Iris: visited the dentist on 3 May 2025 in Split", "Iris: visited the dentist on 4 May 2025 in Split"),
        ("Usuária: emprestei 20 euros à Ana para o comboio", "Usuária: emprestei 20 euros à Bia para o comboio"),
        ("Usuario: me gusta el té verde de la tienda", "Usuario: no me gusta el té verde de la tienda"),
        ("用户: 昨天借给小红二十块钱坐火车回家看妈妈", "用户: 昨天借给小明二十块钱坐火车回家看妈妈"),
        ("用户: 喜欢在海边的小店吃鱼喝茶", "用户: 不喜欢在海边的小店吃鱼喝茶"),
        ("User: लता किताब पढ़ती है हर शाम घर पर", "User: लीता किताब पढ़ती है हर शाम घर पर"),
        ("Iris: writes C# at the harbour office", "Iris: writes C at the harbour office"),
    ],
)
def test_what_differs_by_a_number_a_name_or_a_denial_is_two_facts(one: str, other: str) -> None:
    for texts in ((one, other), (other, one)):
        reflection = reflect([line(1, texts[0]), line(2, texts[1])], MUCH)
        assert [each.text for each in reflection.lines] == list(texts)


def test_lines_that_differ_by_a_number_stay_while_there_is_room() -> None:
    orders = [line(number, f"Iris: order {1000 + number} of green tea reached the depot") for number in range(1, 41)]
    rest = many(60, priority=Priority.LOW, start=101)
    reflection = reflect([*orders, *rest], int(0.8 * sum(each.tokens for each in [*orders, *rest])))
    assert {each.id for each in orders} <= {source for each in reflection.lines for source in each.sources}


@pytest.mark.parametrize("share", [0.99, 0.8, 0.5, 0.2])
def test_cutting_stops_as_soon_as_the_log_is_comfortably_below_its_threshold(share: float) -> None:
    lines = [*many(150, priority=Priority.LOW), *many(100, start=151), *many(50, start=301, priority=Priority.HIGH)]
    threshold = int(share * sum(each.tokens for each in lines))
    left = size(reflect(lines, threshold))
    longest = max(each.tokens for each in lines)
    assert COMFORTABLE * threshold - 2 * longest <= left < COMFORTABLE * threshold


def test_low_lines_go_before_any_weightier_one_and_the_oldest_first() -> None:
    lines = [
        *(line(n, f"Iris: order {n} of tea came", day=n, priority=Priority.HIGH) for n in range(1, 31)),
        *many(30, priority=Priority.LOW, start=31),
    ]
    reflection = reflect(lines, sum(each.tokens for each in lines) - 20)
    assert reflection.dropped
    gone = sorted(why(reflection))
    assert gone == list(range(31, 31 + len(gone)))


def test_a_line_that_alone_fills_the_threshold_goes_rather_than_all_others() -> None:
    page = line(1, "Iris: " + ", ".join(f"plum{number}" for number in range(100)), priority=Priority.HIGH)
    reflection = reflect([page, *many(3, start=2)], 150)
    assert {each.sources for each in reflection.lines} == {(2,), (3,), (4,)}
    assert why(reflection) == {1: "condensed"}


def test_a_log_reflected_again_under_the_same_threshold_stays() -> None:
    lines = [*many(150, priority=Priority.LOW), *many(100, start=151)]
    first = reflect(lines, 2_000)
    again = reflect([line(n, each.text, day=n) for n, each in enumerate(first.lines)], 2_000)
    assert [each.text for each in again.lines] == [each.text for each in first.lines]


def test_two_lines_that_replace_each_other_do_not_both_go() -> None:
    lines = [line(1, "Iris: lives in Split", supersedes=2), line(2, "Iris: lives in Trogir", supersedes=1)]
    assert [each.sources for each in reflect(lines, MUCH).lines] == [(2,)]


def test_terse_lines_stay_untouched_however_often_they_are_reflected() -> None:
    lines = [
        line(1, "Iris: adopted grey cat called Moss 4 May 2025; with sister visited Zagreb, photo lighthouse cliff"),
        line(2, "Tomas: favorite tea? smoky pine; started rowing at lake club"),
    ]
    assert [each.text for each in reflect(lines, MUCH).lines] == [one.text for one in lines]


def test_the_log_comes_under_the_threshold() -> None:
    lines = many(200)
    for threshold in (2_000, 900, 100, 20):
        reflection = reflect(lines, threshold)
        assert 0 < size(reflection) < threshold
        assert covered(reflection) == [one.id for one in lines]


def test_the_old_and_the_light_go_before_the_new_and_the_weighty() -> None:
    lines = [*many(30, priority=Priority.LOW), *many(30, start=31), *many(10, start=61, priority=Priority.HIGH)]
    full = sum(one.tokens for one in lines)
    reflection = reflect(lines, full // 2)
    kept = {source for each in reflection.lines for source in each.sources}
    assert set(range(61, 71)) <= kept
    assert not kept & set(range(1, 31))
    mediums = sorted(kept & set(range(31, 61)))
    assert mediums == list(range(mediums[0], 61))  # the newest of them, without a gap


def test_decisions_outlive_other_lines_of_their_weight() -> None:
    lines = [line(1, "Iris: decided to sell orchard to Luka", kind=Kind.DECISION), *many(20, start=2)]
    reflection = reflect(lines, 60)
    assert (1,) in {each.sources for each in reflection.lines}


def test_a_date_of_a_cited_line_is_not_lost() -> None:
    lines = [
        line(1, "Iris: visited dentist in Split", days=on(2025, 4, 1)),
        line(2, "Iris: visited dentist in Split again", days=on(2025, 4, 20)),
        line(3, "Iris went to the dentist in Split on 2 May 2025."),
    ]
    reflection = reflect(lines, MUCH)
    assert [each.refers_to for each in reflection.lines[:2]] == [on(2025, 4, 1), on(2025, 4, 20)]
    assert "2 May 2025" in reflection.lines[2].text


def test_the_same_session_twice_does_not_grow_the_log() -> None:
    session = [
        line(1, "Iris adopted a grey cat named Moss."),
        line(2, "Tomas is repairing the old mill wheel in Trogir."),
        line(3, "They want to sail to the island of Vis next month."),
    ]
    again = [line(one.id + 10, one.text) for one in session]
    once, twice = reflect(session, MUCH), reflect([*session, *again], MUCH)
    assert [each.text for each in twice.lines] == [each.text for each in once.lines]
    assert covered(twice) == [1, 2, 3, 11, 12, 13]


@pytest.mark.parametrize(
    "text", ["用户: 我昨天搬到了上海", "Usuário: comprei um carro vermelho em 2023", "😀", "?", "x" * 900, "a: b: c"]
)
def test_any_text_passes(text: str) -> None:
    reflection = reflect([line(1, text)], MUCH)
    assert covered(reflection) == [1]


def test_an_empty_log_reflects_to_an_empty_log() -> None:
    assert reflect([], 100) == Reflection(())


def test_a_large_log_is_reflected_without_delay() -> None:
    lines: Sequence[Line] = many(3_000)
    assert covered(reflect(lines, 4_000)) == [one.id for one in lines]


@pytest.mark.parametrize(
    "days",
    ["1 March–31 May 2026", "1 December 2025–28 February 2026", "5–11 June 2026", "10:00–12:30 on the Porto–Vigo line"],
)
def test_a_span_stays_a_span(days: str) -> None:
    old = line(1, f"Iris: opening the bakery in the old mill {days}, because the lease is cheap")
    (kept,) = reflect([old], old.tokens).lines
    assert days.replace("the ", "") in kept.text
