"""Which line of the log a correction corrects."""

import re
from collections.abc import Sequence

from memory.observation import Line
from memory.stems import stems

_TOPIC = 2  # words that a correction shares with its line, where it does not say what was wrong
_SINGLE = 14  # words beyond which a line holds more than the one fact that is corrected
_VALUE = r"(?P<old>[^,.;!?，。！？]{1,60}?)"
_OLD = re.compile(
    "|".join(
        pattern.replace("{old}", _VALUE.replace("old", f"old{place}"))
        for place, pattern in enumerate(
            (
                r"\b(?:moved|switched|changed|relocated|transferred|went) from {old} to\b",
                r"\bnot {old},? (?:but|it's|it is|rather)\b",
                r",\s?not {old}(?:[.!]|$)",
                r"\bno longer (?:at|in|with|on|an?|the|my|works? at|lives? in)?\s?{old}(?:[,.;!]|$)",
                r"\b(?:mudei|mudamos|mudou|troquei) d[eoa] {old} para\b",
                r"\bnão é {old}, (?:é|e sim|mas)\b",
                r"\b(?:mudé|mudamos|mudó|cambié) de {old} a\b",
                r"\bno es {old},? sino\b",
                r"不是{old}[，,]?(?:而)?是",
                r"[从從]{old}(?:搬到|换到|換到|改到|改成|换成|換成)",
            )
        )
    ),
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^\W{0,3}(?:actually|(?:a )?correction|sorry|no)\b|\bi (?:meant|was wrong)\b|\b(?:na verdade|na realidade|corrigindo|en realidad|mejor dicho"
    r"|me equivoqué)\b|其实|其實|更正",
    re.IGNORECASE,
)


def corrected(sentence: str, text: str, log: Sequence[Line]) -> int | None:
    """The id of the one line of `log` that `sentence`, noted as `text`, surely corrects; None when in doubt."""
    old = _OLD.search(sentence)
    if old:
        return _only([line for line in _of_one_fact(log) if _holds(line, stems(old[old.lastgroup or 0]))], text)
    if not _CORRECTS.search(sentence):
        return None
    words = _topic(text)
    return _only([line for line in _of_one_fact(log) if len(words & _topic(line.text)) >= _TOPIC], text)


def _of_one_fact(log: Sequence[Line]) -> list[Line]:
    return [line for line in log if len(stems(line.text)) <= _SINGLE]


def _holds(line: Line, value: frozenset[str]) -> bool:
    return bool(value) and value <= stems(line.text)


def _topic(text: str) -> frozenset[str]:
    """The words of a note without its speaker."""
    _, _, said = text.partition(": ")
    return stems(said or text)


def _only(candidates: Sequence[Line], text: str) -> int | None:
    """The candidate that shares most with `text`, unless another shares as much: then nobody knows which is meant."""
    ranked = sorted(candidates, key=lambda line: (-len(_topic(text) & _topic(line.text)), -line.id))
    if not ranked:
        return None
    if len(ranked) > 1:
        first, second = (len(_topic(text) & _topic(line.text)) for line in ranked[:2])
        if first == second:
            return None
    return ranked[0].id
