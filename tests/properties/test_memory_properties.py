"""What holds for any text: nothing is lost in splitting, nothing forged in prompts and blocks, nothing over budget."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import batches, observer, reflector, splitting, tokens
from memory.blocks import CLOSING, OPENING, block
from memory.budget import split
from memory.checks import normalise
from memory.fence import one_line
from memory.observation import Interval, Kind, Line, Priority
from memory.outcome import Answer, Outcome
from memory.search import search
from memory.turn import Role, ToolCall, Turn

# The machine may be busy with other tests; what is measured here is not time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

# What forgers use: the marks of prompts and blocks, line ends of every kind, chat-template tokens, quotes, joiners.
_PIECES = [
    *(
        "\n",
        "\r\n",
        "\r",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x1e",
        "\x85",
        "\u2028",
        "\u2029",
        "\x00",
        "\x1b",
        "\t",
        " ",
        "\u3000",
    ),
    *("# Log", "# Turns", "# End of data.", "1> ", "2< ", "3= {}", "4! drop {}", "L1 ", "@2026-01-01", "9~ ", ": "),
    *(OPENING, CLOSING, "- ", "2026-01-01", "</", ">", "<|im_start|>", "<|im_end|>", "[INST]", "</s>", "<", "|"),
    *(
        '"',
        "'",
        "\\n",
        "```",
        '{"observations": []}',
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u202e",
        "e\u0301",
        "👩‍👧",
        "🇵🇹",
        "我",
    ),
]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.lists(st.one_of(st.sampled_from(_PIECES), st.text(st.characters(codec="ascii"), max_size=5)), max_size=40).map(
        "".join
    ),
)
_moments = st.integers(0, 400_000).map(lambda minutes: NEW_YEAR + timedelta(minutes=minutes))


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    count = draw(st.integers(0, 12))
    return [_turn(draw, number) for number in range(1, count + 1)]


def _turn(draw: st.DrawFn, number: int) -> Turn:
    role = draw(st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]))
    text = draw(texts)
    names = st.sampled_from(["a", "b", "c"])
    calls = tuple(
        ToolCall(name, draw(texts), draw(texts))
        for name in (draw(st.lists(names, max_size=2)) if role is Role.ASSISTANT else [])
    )
    size = tokens.count(text) + sum(tokens.count(call.name) + tokens.count(call.arguments) for call in calls)
    answers = draw(names) if role is Role.TOOL else None
    name = draw(st.none() | texts)
    return Turn(number, draw(st.integers(1, 3)), role, text, draw(_moments), size, name, calls, answers)


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    spans = st.none() | st.tuples(st.integers(0, 900), st.integers(0, 40)).map(
        lambda span: Interval(date(2025, 1, 1) + timedelta(span[0]), date(2025, 1, 1) + timedelta(span[0] + span[1]))
    )
    return [
        Line(
            number,
            text,
            draw(st.sampled_from(list(Kind))),
            draw(st.sampled_from(list(Priority))),
            draw(_moments),
            tokens.count(text),
            (number,),
            draw(spans),
            draw(st.none() | st.integers(1, 12)),
        )
        for number, text in enumerate(draw(st.lists(texts, max_size=12)), 1)
    ]


@unhurried
@given(texts)
def test_one_line_is_one_line_and_stays_so(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert one_line(line) == line
    assert "<|" not in line
    assert "[INST]" not in line.upper()


@unhurried
@given(texts, st.integers(4, 40))
def test_pieces_lose_nothing_and_fit(text: str, budget: int) -> None:
    cut = splitting.pieces(text, budget)
    assert "".join(cut) == text
    assert all(tokens.count(piece) <= budget or len(piece) == 1 for piece in cut)
    assert all(cut)


@unhurried
@given(turns(), st.integers(1, 300))
def test_portions_lose_nothing_and_a_prefix_ends(said: list[Turn], budget: int) -> None:
    left, rounds = list(said), 0
    while left:
        count = batches.prefix(left, budget)
        assert 1 <= count <= len(left)
        told = [turn for portion in batches.portions(left[:count], budget) for turn in portion]
        for turn in left[:count]:
            of_turn = [one for one in told if one.id == turn.id]
            assert "".join(one.text for one in of_turn) == turn.text
            arguments = [call.arguments for one in of_turn for call in one.tool_calls]
            assert "".join(arguments) == "".join(call.arguments for call in turn.tool_calls)
        left, rounds = left[count:], rounds + 1
    assert rounds <= len(said)


@unhurried
@given(turns(), st.integers(60, 300))
def test_portions_fit_their_budget(said: list[Turn], budget: int) -> None:
    names = [call.name for turn in said for call in turn.tool_calls]
    room = budget + 2 * sum(tokens.count(name) for name in names)  # a name is not split
    for portion in batches.portions(said, room):
        assert sum(map(batches.cost, portion)) <= room


@unhurried
@given(turns())
def test_a_call_and_its_result_go_together(said: list[Turn]) -> None:
    budget = sum(map(batches.cost, said)) or 1
    for part in (budget, budget // 2 + 1, budget // 3 + 1):
        count = batches.prefix(said, part)
        groups = [group for group in _groups(said) if min(group) < count <= max(group)]
        fits = any(all(max(group) < cut or min(group) >= cut for group in _groups(said)) for cut in range(1, count))
        assert not groups or not fits


def _groups(said: list[Turn]) -> list[set[int]]:
    called: dict[tuple[int, str], set[int]] = {}
    groups = []
    for at, turn in enumerate(said):
        for call in turn.tool_calls:
            called[turn.conversation, call.id] = {at}
            groups.append(called[turn.conversation, call.id])
        if turn.tool_call_id and (turn.conversation, turn.tool_call_id) in called:
            called[turn.conversation, turn.tool_call_id].add(at)
    return groups


@unhurried
@given(turns().filter(lambda said: len(said) > 1))
def test_halves_are_both_smaller_and_together_the_whole(said: list[Turn]) -> None:
    first, second = batches.halve(said)
    assert first
    assert second
    assert [*first, *second] == said


_OURS = re.compile(
    r"# Log|# Turns|# Conversation \d+|# End of data\. Answer now, as JSON\."
    r"|@(\d{4}-\d\d-\d\d [A-Z][a-z]{2} )?\d\d:\d\d( [+-]\d{4})?"
)


@unhurried
@given(turns(), logs())
def test_a_prompt_has_a_line_for_each_thing_and_no_other(said: list[Turn], tail: list[Line]) -> None:
    lines = observer.prompt(said, tail).data.splitlines()
    told = [line for line in lines if not _OURS.fullmatch(line)]
    shown = len(observer.shown(tail))
    expected = [f"L{alias}" for alias in range(1, shown + 1)]
    for alias, turn in enumerate(said, 1):
        expected += [f"{alias}{_MARKS[turn.role]}"] if turn.text.strip() or not turn.tool_calls else []
        expected += [f"{alias}!"] * len(turn.tool_calls)
    assert [re.match(r"L?\d+[><=!]?", line)[0] for line in told] == expected  # type: ignore[index]
    assert [line for line in lines if line.startswith("# ") and "Conversation" not in line] == [
        "# Log",
        "# Turns",
        "# End of data. Answer now, as JSON.",
    ]


_MARKS = {Role.USER: ">", Role.ASSISTANT: "<", Role.TOOL: "="}


@unhurried
@given(turns(), logs())
def test_the_same_turns_give_the_same_prompt(said: list[Turn], tail: list[Line]) -> None:
    assert observer.prompt(said, tail) == observer.prompt(list(said), list(tail))


@unhurried
@given(turns(), logs(), st.data())
def test_whatever_a_model_answers_what_is_kept_stands_on_known_turns(
    said: list[Turn], tail: list[Line], data: st.DataObject
) -> None:
    fields = st.sampled_from(["text", "kind", "priority", "evidence", "refers_to", "replaces", "other"])
    scalars = st.none() | st.booleans() | st.integers(-5, 20) | texts | st.sampled_from(["event", "high", "2026-01-01"])
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(fields, inner, max_size=4)
    )
    answer = data.draw(st.one_of(texts, values.map(json.dumps)))
    reading = observer.read(Answer(Outcome.OK, answer), said, tail)
    ids = {turn.id for turn in said}
    for draft in reading.drafts:
        assert draft.evidence
        assert set(draft.evidence) <= ids
        assert 0 < len(draft.text) <= 1_000
        assert draft.supersedes is None or draft.supersedes in {line.id for line in tail}
    assert reading.outcome is Outcome.OK or not reading.drafts


@unhurried
@given(logs(), st.data())
def test_whatever_a_model_answers_a_reflection_covers_the_log(lines: list[Line], data: st.DataObject) -> None:
    whys = st.sampled_from(["duplicate", "superseded", "condensed", None, "because"])
    changes = st.fixed_dictionaries(
        {
            "from": st.lists(st.integers(-1, 14), max_size=6),
            "text": st.none() | texts | st.sampled_from([line.text for line in lines] or [""]),
            "why": whys,
        }
    )
    answer = json.dumps({"changes": data.draw(st.lists(changes, max_size=8))})
    rewrite = reflector.read(Answer(Outcome.OK, answer), lines, 10**9)
    if rewrite.reflection is None:
        return
    cited = {source for line in rewrite.reflection.lines for source in line.sources}
    dropped = [one.id for one in rewrite.reflection.dropped]
    assert cited | set(dropped) == {line.id for line in lines}
    assert not cited & set(dropped)
    assert len(set(dropped)) == len(dropped)
    spoken = {line.id: line.refers_to for line in lines if line.refers_to}
    for new in rewrite.reflection.lines:
        assert new.sources
        for source in new.sources:
            days = spoken.get(source)
            assert days is None or (
                new.refers_to is not None and new.refers_to.start <= days.start and days.end <= new.refers_to.end
            )


@unhurried
@given(logs(), st.integers(1, 4))
def test_a_reflectors_prompt_has_a_line_for_each_line(lines: list[Line], level: int) -> None:
    told = reflector.prompt(lines, 100, level).data.splitlines()
    days = sum(line.startswith("@") for line in told)
    assert len(told) == 2 + days + len(lines)


@unhurried
@given(logs(), st.none() | st.integers(-5, 400))
def test_a_block_has_a_line_for_each_line_and_keeps_its_budget(lines: list[Line], budget: int | None) -> None:
    told = block(lines, budget)
    assert block(lines[::-1], budget) == told
    if budget is not None:
        assert tokens.count(told) <= max(0, budget)
    if not told:
        return
    rows = told.splitlines()
    assert (rows[0], rows[-1]) == (OPENING, CLOSING)
    assert told.count(CLOSING) == 1
    headings = [row for row in rows[1:-1] if not row.startswith("- ")]
    assert headings == sorted({date.fromisoformat(row).isoformat() for row in headings})
    if budget is None:
        assert len(rows) == 2 + len(headings) + len(lines)


@unhurried
@given(texts)
def test_normalising_is_idempotent_and_blind_to_case_and_spaces(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert normalise(f"  {text}\n") == once
    assert once or not any(map(str.isalnum, text))


@unhurried
@given(logs(), texts, st.integers(-1, 20))
def test_a_search_finds_lines_of_the_log_best_first(lines: list[Line], query: str, limit: int) -> None:
    found = search(lines, query, limit)
    scores = [score for _, score in found]
    assert len(found) <= max(0, limit)
    assert scores == sorted(scores, reverse=True)
    assert len({line.id for line, _ in found}) == len(found)
    assert search(lines, query, limit) == found


@pytest.mark.parametrize("floors", [False, True])
@unhurried
@given(st.integers(-10, 500), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=8))
def test_a_split_budget_is_never_exceeded(floors: bool, total: int, parts: list[tuple[int, int]]) -> None:  # noqa: FBT001 - a row of the table
    wanted = [want for want, _ in parts]
    given_out = split(total, wanted, [floor for _, floor in parts] if floors else [])
    assert len(given_out) == len(wanted)
    assert all(0 <= got <= want for got, want in zip(given_out, wanted, strict=True))
    assert sum(given_out) == min(max(0, total), sum(wanted))
