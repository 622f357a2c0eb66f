"""The items of an observer's answer as claims about turns: forms that models vary are read, what is missing is not guessed."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from memory import dating
from memory.checks import Claim
from memory.observation import Kind, Line, Priority
from memory.reply import Form, Item
from memory.turn import Turn

FORM = Form(
    key="observations",
    mark="text",
    synonyms={
        "observation": "text",
        "fact": "text",
        "content": "text",
        "memory": "text",
        "statement": "text",
        "type": "kind",
        "category": "kind",
        "importance": "priority",
        "turns": "evidence",
        "turn": "evidence",
        "aliases": "evidence",
        "sources": "evidence",
        "source": "evidence",
        "date": "refers_to",
        "dates": "refers_to",
        "when": "refers_to",
        "supersedes": "replaces",
    },
)

_OTHER_KINDS = {
    "fact": Kind.ATTRIBUTE,
    "goal": Kind.PLAN,
    "intention": Kind.PLAN,
    "todo": Kind.TASK,
    "action": Kind.EVENT,
}
_Label = TypeVar("_Label", bound=StrEnum)


def claims(
    items: Sequence[Item], turns: Sequence[Turn], log: Sequence[Line], misshapen: Counter[str]
) -> Iterator[Claim]:
    """Those of `items` that have a text, a kind and a known turn; the others are counted in `misshapen`, by reason.

    An alias is a place, from 1: among `turns` for evidence, among the shown lines of the `log` for what is replaced.
    An unknown one is left out, and counted.
    """
    for item in items:
        text = " ".join(item["text"].split()) if isinstance(item["text"], str) else ""
        kind = _label(item.get("kind"), Kind) or _OTHER_KINDS.get(_word(item.get("kind")))
        named = aliases(item.get("evidence"))
        evidence = tuple(turns[alias - 1] for alias in named if 1 <= alias <= len(turns))
        replaced = [alias for alias in aliases(item.get("replaces"), barred="") if alias]
        known = [log[alias - 1].id for alias in replaced if 1 <= alias <= len(log)]
        misshapen["unknown_alias"] += len(evidence) < len(named) or len(known) < len(replaced)
        if not text or kind is None or not evidence:
            misshapen["no_text" if not text else "no_kind" if kind is None else "no_evidence"] += 1
            continue
        priority = _label(item.get("priority"), Priority) or Priority.MEDIUM
        refers_to = dating.interval(item.get("refers_to"))
        yield Claim(text, kind, priority, evidence, refers_to, known[0] if known else None)


def aliases(value: Any, barred: str = "Ll") -> list[int]:
    """Aliases in the order given, once each: 3, "3", "#3", [1, "2"], "1, 4-6". After a `barred` letter no number is one."""
    if isinstance(value, list):
        below = [alias for each in value if not isinstance(each, list) for alias in aliases(each, barred)]
        return list(dict.fromkeys(below))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return []
    found: list[int] = []
    for first, last in re.findall(
        rf"(?<![\d.\-{barred}])(\d{{1,6}})(?!\d|\.\d)(?:\s*(?:-|–|\.\.|to)\s*#?(\d{{1,6}}))?", str(value)
    ):
        low, high = int(first), int(last or first)
        found.extend(range(low, min(high, low + _LONGEST) + 1) if high >= low else [low])
    return list(dict.fromkeys(found))


_LONGEST = 10_000  # aliases in one range


def _label(value: Any, labels: type[_Label]) -> _Label | None:
    return next((label for label in labels if label.value == _word(value)), None)


def _word(value: Any) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""
