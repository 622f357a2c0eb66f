"""Which turns go to the model together: never a call without its results, never a turn cut short.

The caller reads a log's pending turns in log order, takes `prefix` of them, and moves its cursor over that prefix once
all its `portions` are observed. Nearly always there is one portion; a turn that is larger than the budget makes more.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory import splitting, tokens
from memory.turn import Role, ToolCall, Turn

MARKUP = 3  # tokens around one turn in a prompt
REACH = 64  # turns past the budget in which a call's results are waited for
_LEAD = 40  # tokens of context that a part carries


@dataclass(frozen=True, slots=True)
class Part(Turn):
    """Part `number` of `of` of one turn. `lead` is what came just before: the call, or the last words."""

    number: int = 1
    of: int = 1
    lead: str = ""


def prefix(turns: Sequence[Turn], budget: int) -> int:
    """How many turns from the front fit `budget` tokens, markup included: at least one while there is one.

    `turns` are in log order. A call whose results follow is not cut off from them: where its group is larger than the
    budget, the prefix is as long as the group (see `portions`), unless that reaches further than REACH turns.
    """
    if not turns:
        return 0
    fitting = _fitting(turns, budget)
    clean = _clean_cuts(turns)
    before = next((cut for cut in range(fitting, 0, -1) if clean[cut]), 0)
    after = next((cut for cut in range(fitting + 1, min(fitting + REACH, len(turns)) + 1) if clean[cut]), fitting)
    return before or after


def portions(turns: Sequence[Turn], budget: int) -> list[tuple[Turn, ...]]:
    """All of `turns`, in conversation order, in portions of at most `budget` tokens, markup included.

    A turn that is larger than the budget comes in parts; together the portions hold every character of every turn. A
    single character of more tokens than the budget stands alone, over it.
    """
    packed: list[list[Turn]] = []
    room = 0
    for group in _groups(in_conversation_order(turns)):
        whole = sum(map(cost, group)) <= budget
        for piece in [group] if whole else [[part] for turn in group for part in _fitted(turn, group, budget)]:
            size = sum(map(cost, piece))
            if not packed or size > room:
                packed.append([])
                room = budget
            packed[-1].extend(piece)
            room -= size
    return [tuple(portion) for portion in packed]


def in_conversation_order(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of each conversation together, conversations by their first turn."""
    conversations: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        conversations[turn.conversation].append(turn)
    return [turn for conversation in conversations.values() for turn in conversation]


def halve(portion: Sequence[Turn]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """Two halves by tokens, cut between groups where there is such a cut. `portion` holds at least two turns."""
    clean = _clean_cuts(portion)
    cuts = [cut for cut in range(1, len(portion)) if clean[cut]] or list(range(1, len(portion)))
    sizes = [0]
    for turn in portion:
        sizes.append(sizes[-1] + cost(turn))
    middle = min(cuts, key=lambda cut: abs(sizes[-1] - 2 * sizes[cut]))
    return tuple(portion[:middle]), tuple(portion[middle:])


def parts(turn: Turn, budget: int, call: str = "") -> list[Part]:
    """`turn` in parts of at most `budget` tokens, markup and context included.

    The text comes in order, then the calls' arguments. A part's context is `call` for a result, else the last words
    of the part before it.
    """
    aside = min(_LEAD, budget // 4)
    room = max(1, budget - 2 * MARKUP - aside)
    told = [_part(turn, text, ()) for text in splitting.pieces(turn.text, room)]
    called = [_part(turn, "", (piece,)) for call in turn.tool_calls for piece in _smaller(call, room)]
    split = told + called
    before = [call, *(part.text for part in split)]
    return [
        replace(part, number=at, of=len(split), lead=_start(call, aside) if call else _end(before[at - 1], aside))
        for at, part in enumerate(split, 1)
    ]


def cost(turn: Turn) -> int:
    """The tokens that a turn takes in a prompt, markup and context included."""
    lead = tokens.count(turn.lead) + MARKUP if isinstance(turn, Part) and turn.lead else 0
    return turn.tokens + MARKUP * (1 + len(turn.tool_calls)) + lead


def _fitting(turns: Sequence[Turn], budget: int) -> int:
    room = budget
    for count, turn in enumerate(turns):
        room -= cost(turn)
        if room < 0:
            return max(1, count)
    return len(turns)


def _clean_cuts(turns: Sequence[Turn]) -> list[bool]:
    """For each cut 0..n: no call before it has a result behind it. A reused call id belongs to its latest call."""
    called: dict[tuple[int, str], int] = {}
    last: dict[int, int] = {}
    for at, turn in enumerate(turns):
        called.update(((turn.conversation, call.id), at) for call in turn.tool_calls)
        if turn.tool_call_id is not None and (turn.conversation, turn.tool_call_id) in called:
            last[called[turn.conversation, turn.tool_call_id]] = at
    reach, clean = -1, [True]
    for at in range(len(turns)):
        reach = max(reach, last.get(at, -1))
        clean.append(reach <= at)
    return clean


def _groups(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    clean = _clean_cuts(turns)
    start = 0
    for cut in range(1, len(turns) + 1):
        if clean[cut]:
            yield list(turns[start:cut])
            start = cut


def _fitted(turn: Turn, group: Sequence[Turn], budget: int) -> Sequence[Turn]:
    fits = cost(turn) <= budget or not (turn.text or turn.tool_calls)
    return [turn] if fits else parts(turn, budget, _call_of(turn, group))


def _call_of(turn: Turn, group: Sequence[Turn]) -> str:
    """A result's call, for the parts that stand away from it."""
    if turn.role is not Role.TOOL:
        return ""
    calls = [call for other in group for call in other.tool_calls if call.id == turn.tool_call_id]
    return f"{calls[-1].name} {calls[-1].arguments}" if calls else ""


def _smaller(call: ToolCall, budget: int) -> list[ToolCall]:
    room = max(1, budget - tokens.count(call.name))
    return [replace(call, arguments=piece) for piece in splitting.pieces(call.arguments, room)] or [call]


def _part(turn: Turn, text: str, calls: tuple[ToolCall, ...]) -> Part:
    return Part(
        id=turn.id,
        conversation=turn.conversation,
        role=turn.role,
        text=text,
        said_at=turn.said_at,
        tokens=tokens.count(text) + sum(tokens.count(f"{call.name}{call.arguments}") for call in calls),
        name=turn.name,
        tool_calls=calls,
        tool_call_id=turn.tool_call_id,
    )


def _start(text: str, budget: int) -> str:
    """The first words of `text`, at most `budget` tokens."""
    kept = text[: 4 * budget]
    while tokens.count(kept) > budget:
        kept = kept[: len(kept) * 3 // 4]
    return kept


def _end(text: str, budget: int) -> str:
    """The last words of `text`, at most `budget` tokens."""
    kept = text[-4 * budget :] if budget else ""
    while tokens.count(kept) > budget:
        kept = kept[len(kept) // 4 + 1 :]
    return kept
