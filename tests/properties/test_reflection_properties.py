"""Whatever a log holds, a reflection loses nothing that it need not lose."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memory import condense, reflector, tokens
from memory.observation import Interval, Kind, Line, Priority, Rewritten
from memory.outcome import Answer, Outcome

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

AUTUMN = datetime(2025, 10, 6, 9, tzinfo=UTC)
_SAYINGS = [
    "Vesna: lent {name} {number} € for the ferry",
    "Vesna: order {number} of oak boards reached {name}",
    "Vesna lent {name} {number} euros on {day} November 2025 for the ferry.",
    "Vesna: {name} paid the {number} dinars back",
    "Vesna: {name} never paid the {number} dinars back",
    "Usuária: emprestou {number} reais a {name}",
    "用户: 借给{name}{number}元",
    "Vesna met {name} at the harbour",
    "Vesna: likes quince jam",
]


@st.composite
def facts(draw: st.DrawFn, least: int = 0) -> list[Line]:
    lines = []
    for number in range(1, draw(st.integers(least, 25)) + 1):
        text = draw(st.sampled_from(_SAYINGS)).format(
            name=draw(st.sampled_from(["Zoran", "Bo", "Ildikó", "Quim", "小明", "An"])),
            number=draw(st.integers(1, 12)) * draw(st.sampled_from([1, 100])),
            day=draw(st.integers(1, 5)),
        )
        at = AUTUMN + timedelta(hours=draw(st.integers(0, 90)))
        on = at.date() - timedelta(days=draw(st.integers(0, 2)))
        days = draw(st.none() | st.just(Interval(on, on)))
        kind, priority = draw(st.sampled_from(Kind)), draw(st.sampled_from(Priority))
        lines.append(Line(number, text, kind, priority, at, tokens.count(text), refers_to=days))
    return lines


def particulars(text: str) -> set[str]:
    return set(re.findall(r"\d+", text)) | set(re.findall(r"\b[A-ZÁÉÍÓÚ]\w+", text)) | set(re.findall(r"小明", text))


def size(lines: Sequence[Line] | Sequence[Rewritten]) -> int:
    return sum(tokens.count(line.text) for line in lines)


def as_log(lines: Sequence[Rewritten]) -> list[Line]:
    return [
        Line(number, line.text, line.kind, line.priority, line.observed_at, 1, refers_to=line.refers_to)
        for number, line in enumerate(lines, 1)
    ]


@unhurried
@given(facts(), st.floats(0.1, 1.5))
def test_a_duplicate_leaves_no_number_date_or_name_missing(lines: list[Line], share: float) -> None:
    reflection = condense.reflect(lines, int(share * size(lines)))
    old = {line.id: line for line in lines}
    left = [(particulars(line.text), line.refers_to) for line in reflection.lines]
    for dropped in reflection.dropped:
        lost = old[dropped.id]
        if dropped.reason == "duplicate":
            assert any(particulars(lost.text) <= said and lost.refers_to in {days, None} for said, days in left)


@unhurried
@given(facts(least=1))
def test_a_log_below_its_threshold_is_only_deduplicated(lines: list[Line]) -> None:
    reflection = condense.reflect(lines, size(lines) + 1)
    old = {line.id: line for line in lines}
    assert all(line.text == old[line.sources[0]].text for line in reflection.lines)
    assert {dropped.reason for dropped in reflection.dropped} <= {"duplicate"}


@unhurried
@given(facts(least=2), st.floats(0.05, 1))
def test_a_reflection_is_below_its_threshold_whenever_it_can_be(lines: list[Line], share: float) -> None:
    threshold = int(share * size(lines))
    left = condense.reflect(lines, threshold).lines
    smallest = min(line.tokens for line in lines)
    assert size(left) > 0
    assert size(left) < threshold or threshold <= smallest


@unhurried
@given(facts(least=2), st.floats(0.1, 1.5))
def test_a_reflection_of_a_reflection_is_the_same(lines: list[Line], share: float) -> None:
    threshold = int(share * size(lines))
    first = condense.reflect(lines, threshold).lines
    if size(first) < threshold:
        again = condense.reflect(as_log(first), threshold)
        assert [line.text for line in again.lines] == [line.text for line in first]


@unhurried
@given(facts(), st.floats(0.1, 0.99))
def test_nothing_of_weight_goes_for_want_of_room_while_a_light_line_stays(lines: list[Line], share: float) -> None:
    reflection = condense.reflect(lines, int(share * size(lines)))
    old = {line.id: line for line in lines}
    gone = {old[one.id].priority for one in reflection.dropped if one.reason == "condensed"}
    if Priority.HIGH in gone and len(reflection.lines) > 1:
        kept = {line.priority for line in reflection.lines}
        assert kept == {Priority.HIGH} or not kept


@unhurried
@given(facts(least=1), st.data())
def test_a_model_cannot_call_a_duplicate_what_says_another_number_or_name(
    lines: list[Line], data: st.DataObject
) -> None:
    whys = st.sampled_from(["duplicate", "duplicate", "condensed"])
    aliases = st.lists(st.integers(1, len(lines)), min_size=1, max_size=8)
    changes = data.draw(st.lists(st.fixed_dictionaries({"from": aliases, "text": st.none(), "why": whys}), min_size=1))
    rewrite = reflector.read(Answer(Outcome.OK, json.dumps({"changes": changes})), lines, 10**9)
    assume(rewrite.outcome is not Outcome.DEGENERATE)  # one that goes round in circles is not heard at all
    assert rewrite.reflection is not None
    left = [particulars(line.text) for line in rewrite.reflection.lines]
    old = {line.id: line for line in lines}
    for dropped in rewrite.reflection.dropped:
        if dropped.reason == "duplicate":
            assert any(particulars(old[dropped.id].text) <= said for said in left)
