"""Which line of the log a correction corrects."""

import re
from collections.abc import Sequence

from memory.observation import Line
from memory.stems import stems

_TOPIC = 2  # words that a correction shares with its line, where it does not say what was wrong
_SINGLE = 14  # words beyond which a line holds more than the one fact that is corrected
_VALUE = r"(?P<old{0}>[^,.;!?，。！？]{{1,60}}?)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    """The patterns as one; in each "{old}" is the value that no longer holds."""
    each = [pattern.replace("{old}", _VALUE.format(place)) for place, pattern in enumerate(patterns)]
    return re.compile("|".join(each), re.IGNORECASE)


# Says that something was so and is no more: who holds that value in the log is corrected.
_CHANGE = _any_of(
    r"\b(?:moved|switched|changed|relocated|transferred) from {old} to\b",
    r"\bno longer (?:at|in|with|on|an?|the|my|works? at|lives? in)?\s?{old}(?:[,.;!]|$)",
    r"\b(?:mudei|mudamos|mudou|troquei) d[eoa] {old} para\b",
    r"\b(?:mudé|mudamos|mudó|cambié) de {old} a\b",
    r"不是{old}[，,]?(?:而)?是",
    r"[从從]{old}(?:搬到|换到|換到|改到|改成|换成|換成)",
)
# Sets one value against another: of the lines that hold the one, that which is about the same matter.
_CONTRAST = _any_of(
    r"\bnot {old},? (?:but|it's|it is|rather)\b",
    r",\s?not {old}(?:[.!]|$)",
    r"\bnão é {old}, (?:é|e sim|mas)\b",
    r"\bno es {old},? sino\b",
)
# Says that something was wrong, but not what.
_AMENDS = re.compile(
    r"^\W{0,3}(?:actually|(?:a )?correction|sorry|no)\b|\bi (?:meant|was wrong)\b|\b(?:na verdade|na realidade|corrigindo|en realidad"
    r"|mejor dicho|me equivoqué)\b|其实|其實|更正",
    re.IGNORECASE,
)


def corrected(sentence: str, text: str, log: Sequence[Line]) -> int | None:
    """The id of the one line of `log` that `sentence`, noted as `text`, surely corrects; None when in doubt."""
    topic = _topic(text)
    if change := _CHANGE.search(sentence):
        gone = stems(change[change.lastgroup or 0])
        return _nearest(topic, [line for line in _of_one_fact(log) if gone and gone <= _topic(line.text)])
    if contrast := _CONTRAST.search(sentence):
        gone = stems(contrast[contrast.lastgroup or 0])
        holders = [line for line in _of_one_fact(log) if gone and gone <= _topic(line.text)]
        return _nearest(topic, [line for line in holders if (topic - gone) & _topic(line.text)])
    if _AMENDS.search(sentence):
        return _nearest(topic, [line for line in _of_one_fact(log) if len(topic & _topic(line.text)) >= _TOPIC])
    return None


def _of_one_fact(log: Sequence[Line]) -> list[Line]:
    return [line for line in log if len(stems(line.text)) <= _SINGLE]


def _topic(text: str) -> frozenset[str]:
    """The words of a note without its speaker."""
    _, _, said = text.partition(": ")
    return stems(said or text)


def _nearest(topic: frozenset[str], candidates: Sequence[Line]) -> int | None:
    """The candidate that shares most with `topic`, unless another shares as much: then nobody knows which is meant."""
    shared = sorted(((len(topic & _topic(line.text)), line.id) for line in candidates), reverse=True)
    if not shared or (len(shared) > 1 and shared[0][0] == shared[1][0]):
        return None
    return shared[0][1]
