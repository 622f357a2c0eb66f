"""What a raw answer is: a list of items, perhaps repaired, or one of the ways to fail."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory import loops, salvage
from memory.outcome import Answer, Outcome

MAX_CHARACTERS = 400_000  # of one answer; far past what 8,000 tokens of turns can need
_START = 400  # characters in which a refusal shows itself

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """What the list is called in the answer, what marks one of its items, and by which other names models call things."""

    key: str
    mark: str
    synonyms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """`items` as they came, keys in snake case. `cut_off`: the answer ended early, so that items may be missing."""

    outcome: Outcome
    items: tuple[Item, ...] = ()
    cut_off: bool = False


def read(answer: Answer, form: Form) -> Reply:
    """The items of `answer`, or why there are none. An explicit empty list is no failure."""
    if answer.outcome is not Outcome.OK:
        return Reply(answer.outcome)
    if not answer.text.strip("\ufeff\u200b \t\r\n\v\f"):
        return Reply(_nothing_said(answer.finish_reason))
    if len(answer.text) > MAX_CHARACTERS:
        return Reply(Outcome.DEGENERATE if loops.looping(answer.text[:MAX_CHARACTERS]) else Outcome.OVER_LONG)
    found, cut_off = salvage.values(answer.text)
    items = tuple(item for value in found for item in _items(value, form))
    whole = _well_formed(answer.text)
    if _repeating(items, form) or (not whole and loops.looping(answer.text)):
        return Reply(Outcome.DEGENERATE)
    cut_off = not whole and (cut_off or answer.finish_reason in {"length", "content_filter"})
    if items or _is_empty_list(answer.text, found, form):
        return Reply(Outcome.OK, items, cut_off)
    return Reply(_nothing_read(answer, found))


def _nothing_said(finish_reason: str | None) -> Outcome:
    """Without a word: all tokens went into thoughts, a filter cut in, or the model had nothing."""
    return {"length": Outcome.OVER_LONG, "content_filter": Outcome.REFUSAL}.get(finish_reason or "", Outcome.EMPTY)


def _nothing_read(answer: Answer, found: Sequence[Any]) -> Outcome:
    """Words, but none that make an item."""
    refused = any(isinstance(value, dict) and value.get("refusal") for value in found)
    if refused or answer.finish_reason == "content_filter" or _REFUSAL.search(answer.text[:_START]):
        return Outcome.REFUSAL
    return Outcome.OVER_LONG if answer.finish_reason == "length" else Outcome.UNPARSABLE


def _well_formed(text: str) -> bool:
    """Whether it is JSON from end to end: then a loop can only be inside single items, which are judged one by one."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _repeating(items: Sequence[Item], form: Form) -> bool:
    return loops.repeating([json.dumps(item[form.mark], sort_keys=True) for item in items])


def _items(value: Any, form: Form, depth: int = 4) -> Iterator[Item]:
    """The items in `value`: itself, a list's, or those of what it wraps, `depth` levels down."""
    if isinstance(value, dict):
        named = {_named(key, form): _whole(below) for key, below in value.items()}
        if form.mark in named:
            yield named
        else:
            for below in named.values():
                yield from _items(below, form, depth - 1) if depth and isinstance(below, dict | list) else ()
    elif isinstance(value, list):
        for below in value:
            yield from _items(below, form, depth - 1) if depth and isinstance(below, dict) else ()


def _whole(value: Any) -> Any:
    """A string with no half of a character and no NUL: JSON may escape them, and nothing can seal or store them."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def _is_empty_list(text: str, found: Sequence[Any], form: Form) -> bool:
    """Whether the answer says in so many words that there is nothing."""
    if any(value == [] or (isinstance(value, dict) and _listed(value, form) == []) for value in found):
        return True
    return not found and "{" not in text and len(text) < _START and re.search(r"\[\s*]", text) is not None


def _listed(value: Mapping[str, Any], form: Form) -> Any:
    return next((below for key, below in value.items() if _named(key, form) == form.key), None)


def _named(key: object, form: Form) -> str:
    """A key in snake case, and by our own word for it."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", str(key).strip()).casefold()
    return form.synonyms.get(words, words)


# "I am sorry", "I cannot", "as an AI": what a refusal begins with, in the languages that models are asked in most.
_REFUSAL = re.compile(
    r"\b(?:i(?:['’]m| am) (?:very |so |really )?(?:sorry|afraid|unable|not able)|i (?:can(?:['’]t|not| not)|won['’]t|must decline)"
    r"|as an ai\b|(?:can(?:['’]t|not)|unable to) (?:help|assist|comply|fulfil)"
    r"|lo siento|no puedo|lamento|desculpe|sinto muito|não posso|nao posso|je suis désolée?|je ne peux pas"
    r"|tut mir leid|ich kann (?:das |dabei |ihnen |dir )*(?:leider )?nicht|mi dispiace|non posso|het spijt me|ik kan (?:je |u )?niet"
    r"|przepraszam|nie mogę|üzgünüm|maaf|извините|не могу)"
    r"|抱歉|对不起|對不起|我无法|我不能|無法提供|申し訳|お答えできません|죄송|할 수 없습니다|آسف|لا أستطيع|לא יכול|क्षमा करें|माफ़",
    re.IGNORECASE,
)
