"""Which turns go to the model together."""

import itertools
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from memory import batches, tokens
from memory.batches import Part, cost, halve, in_conversation_order, parts, portions, prefix
from memory.turn import Role, ToolCall, Turn

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def said(
    number: int,
    text: str = "I moved to Porto.",
    role: Role = Role.USER,
    conversation: int = 1,
    calls: Sequence[str] = (),
    answers: str | None = None,
) -> Turn:
    called = tuple(ToolCall(call, "find_order", '{"order": 7}') for call in calls)
    size = tokens.count(text) + sum(tokens.count(call.name + call.arguments) for call in called)
    moment = NOON + timedelta(seconds=number)
    return Turn(number, conversation, role, text, moment, size, tool_calls=called, tool_call_id=answers)


def calling(number: int, *calls: str, conversation: int = 1) -> Turn:
    return said(number, "", Role.ASSISTANT, conversation, calls)


def result(number: int, call: str, text: str = "Order 7 left on Monday.", conversation: int = 1) -> Turn:
    return said(number, text, Role.TOOL, conversation, answers=call)


def room_for(turns: Sequence[Turn]) -> int:
    return sum(map(cost, turns))


def test_no_turns_make_no_batch() -> None:
    assert prefix([], 8_000) == 0
    assert portions([], 8_000) == []


def test_as_many_turns_go_along_as_fit() -> None:
    turns = [said(number) for number in range(1, 11)]
    assert prefix(turns, room_for(turns)) == 10
    assert prefix(turns, room_for(turns) - 1) == 9


def test_one_turn_over_the_budget_goes_alone() -> None:
    huge = said(1, "The harbour is old. " * 2_000)
    assert prefix([huge, said(2)], 8_000) == 1


def test_a_small_turn_before_a_huge_one_goes_without_it() -> None:
    assert prefix([said(1), said(2, "The harbour is old. " * 2_000)], 8_000) == 1


def test_a_call_is_not_cut_off_from_its_result() -> None:
    turns = [said(1), said(2), calling(3, "a"), result(4, "a"), said(5)]
    assert prefix(turns, room_for(turns[:3])) == 2


def test_a_call_with_several_results_keeps_all_of_them() -> None:
    turns = [said(1), calling(2, "a", "b"), result(3, "a"), result(4, "b"), said(5)]
    assert prefix(turns, room_for(turns[:3])) == 1
    assert prefix(turns, room_for(turns[:4])) == 4


def test_turns_of_another_conversation_between_call_and_result_do_not_part_them() -> None:
    turns = [said(1), calling(2, "a"), said(3, conversation=2), said(4, conversation=2), result(5, "a")]
    assert prefix(turns, room_for(turns[:4])) == 1


def test_equal_call_ids_of_two_conversations_are_two_calls() -> None:
    turns = [calling(1, "a"), result(2, "a"), calling(3, "a", conversation=2), result(4, "a", conversation=2)]
    assert prefix(turns, room_for(turns[:3])) == 2


def test_a_reused_call_id_belongs_to_its_latest_call() -> None:
    turns = [calling(1, "a"), result(2, "a"), said(3), calling(4, "a"), result(5, "a")]
    assert prefix(turns, room_for(turns[:4])) == 3


def test_a_group_over_the_budget_goes_whole_when_it_stands_first() -> None:
    turns = [calling(1, "a"), result(2, "a", "Order 7 left on Monday. " * 3_000), said(3)]
    assert prefix(turns, 8_000) == 2


def test_a_result_that_is_too_far_off_does_not_hold_up_the_rest() -> None:
    between = [said(number, conversation=2) for number in range(2, 200)]
    turns = [calling(1, "a"), *between, result(200, "a")]
    assert 1 <= prefix(turns, 100) < batches.REACH


def test_a_result_whose_call_went_before_goes_along() -> None:
    assert prefix([result(1, "gone"), said(2)], 8_000) == 2


def test_conversations_are_told_one_after_the_other() -> None:
    turns = [said(1), said(2, conversation=2), said(3), said(4, conversation=2)]
    assert [turn.id for turn in in_conversation_order(turns)] == [1, 3, 2, 4]


def test_what_fits_is_one_portion() -> None:
    turns = [said(1), said(2, conversation=2), said(3)]
    assert portions(turns, 8_000) == [tuple(in_conversation_order(turns))]


def test_a_huge_turn_comes_in_parts_that_lose_nothing() -> None:
    text = "The harbour is old. Ana painted it in 1998, twice.\n" * 1_000
    told = portions([said(1), said(2, text), said(3)], 2_000)
    assert all(room_for(portion) <= 2_000 for portion in told)
    cut = [turn for portion in told for turn in portion if isinstance(turn, Part)]
    assert "".join(part.text for part in cut) == text
    assert [part.number for part in cut] == list(range(1, len(cut) + 1))
    assert {part.of for part in cut} == {len(cut)}
    assert all(part.role is Role.USER and part.said_at == NOON + timedelta(seconds=2) for part in cut)


def test_a_part_carries_the_words_before_it() -> None:
    cut = parts(said(1, "The harbour is old. Ana painted it in 1998. " * 200), 500)
    assert cut[0].lead == ""
    assert all(after.lead and before.text.endswith(after.lead) for before, after in itertools.pairwise(cut))


def test_the_parts_of_a_result_carry_its_call() -> None:
    turns = [calling(1, "a"), result(2, "a", "Order 7 left on Monday. " * 1_000)]
    cut = [turn for portion in portions(turns, 1_000) for turn in portion if isinstance(turn, Part)]
    assert len(cut) > 2
    assert all(part.lead.startswith('find_order {"order": 7}') for part in cut)


def test_huge_arguments_of_a_call_are_split_as_well() -> None:
    arguments = '{"letter": "' + "Dear Ana, the harbour is old. " * 1_000 + '"}'
    huge = Turn(
        1,
        1,
        Role.ASSISTANT,
        "I send it.",
        NOON,
        tokens.count(arguments),
        tool_calls=(ToolCall("a", "send", arguments),),
    )
    told = portions([huge], 1_000)
    calls = [call for portion in told for turn in portion for call in turn.tool_calls]
    assert "".join(call.arguments for call in calls) == arguments
    assert {call.name for call in calls} == {"send"}
    assert all(room_for(portion) <= 1_000 for portion in told)


def test_a_call_goes_into_one_portion_with_its_result() -> None:
    turns = [said(1), said(2), calling(3, "a"), result(4, "a"), said(5)]
    told = portions(turns, room_for(turns[:3]))
    homes = {turn.id: at for at, portion in enumerate(told) for turn in portion}
    assert homes[3] == homes[4]


def test_halves_are_cut_between_groups() -> None:
    turns = [said(1), calling(2, "a"), result(3, "a"), said(4)]
    first, second = halve(turns)
    assert (*first, *second) == tuple(turns)
    assert len(first) in {1, 3}


def test_a_group_alone_is_halved_all_the_same() -> None:
    turns = [calling(1, "a"), result(2, "a")]
    assert halve(turns) == ((turns[0],), (turns[1],))


def test_halving_ends_with_the_one_turn() -> None:
    portion = tuple(said(number) for number in range(1, 101))
    steps = 0
    while len(portion) > 1:
        portion, _ = halve(portion)
        steps += 1
    assert steps <= 8


@pytest.mark.parametrize("text", ["", " ", "\n", "🇵🇹", "a\u0301"])
def test_a_turn_of_hardly_anything_is_one_part(text: str) -> None:
    cut = parts(said(1, text), 100)
    assert "".join(part.text for part in cut) == text
    assert len(cut) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 262_144,
        " " * 262_144,
        "." * 262_144,
        "我住在里斯本。" * 37_000,
        "👨‍👩‍👧‍👦" * 10_000,
        "a. " * 87_000,
        "\n" * 262_144,
    ],
    ids=["letters", "spaces", "stops", "chinese", "families", "crumbs", "lines"],
)
def test_a_quarter_of_a_megabyte_is_split_in_linear_time(text: str) -> None:
    began = time.process_time()
    cut = parts(said(1, text), 4_000)
    assert time.process_time() - began < 5
    assert "".join(part.text for part in cut) == text
    assert all(cost(part) <= 4_000 for part in cut)
