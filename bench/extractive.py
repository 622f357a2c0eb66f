"""How good and how fast is thinking without a model? builtin:extractive and its reflector on LoCoMo, in this process.

The data and its scorer lie outside the project (AFTERTURN_SHARED); where they are absent the bench says so and ends.
"""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.report import shared, skip, tell
from memory import condense, extractive, tokens
from memory.observation import Draft, Kind, Line, Priority, Rewritten
from memory.turn import Role, Turn

_BATCH = 8_000  # tokens, as the observer's threshold has it
_TAIL = 60  # lines of the log that the observer sees
_SHARE = 0.7  # of the log's tokens: the threshold that forces the rewrite, as in bench.reflect
_GOAL = "observe: kept <= 21 %, session >= 80, ten best >= 65, dates >= 88 right, <= 6 wrong, duplicates <= 0.5 %, >= 2,000 turns/s"
_UNION_GOAL = "reflect: kept <= 25 %, session >= 75"


@dataclass(frozen=True, slots=True)
class Talk:
    """One sample as turns, with the dialogue id and the session of each."""

    name: str
    turns: Sequence[Turn]
    place: dict[int, tuple[str, int]]


def main() -> None:
    data, tools = shared("data", "locomo", "locomo.json"), shared("tools", "locomo_eval.py")
    if data is None or tools is None:
        skip("extractive", "LoCoMo or its scorer is not there")
        return
    scorer = _module(tools)
    samples = scorer.load(data)
    drafts, seconds, count = _observed(samples)
    _report("extractive", _GOAL, scorer.score(samples, drafts), turns_per_second=round(count / seconds))
    _report(
        "condense", _UNION_GOAL, scorer.score(samples, _reflected(samples, _module(tools.with_name("locomo_union.py"))))
    )


def _report(bench: str, goal: str, score: dict[str, float], **more: float) -> None:
    shares = {
        "kept": "kept",
        "session": "surv_ses",
        "ten_best": "surv_bm10",
        "dates_right": "date_right",
        "dates_wrong": "date_wrong",
        "duplicates": "dup",
    }
    figures = {name: round(100 * score[key], 1) for name, key in shares.items()}
    tell(bench, goal, **figures, entries=score["entries"], **more)


def _module(path: Path) -> ModuleType:
    """A scorer by its path; it may import what stands beside it."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _observed(samples: Sequence[dict[str, Any]]) -> tuple[dict[str, list[dict[str, Any]]], float, int]:
    """The log of each sample in the scorer's shape, the seconds of one core that it took, and the number of turns."""
    log: dict[str, list[dict[str, Any]]] = {}
    seconds, count = 0.0, 0
    for sample in samples:
        talk = _talk(sample)
        drafts: list[Draft] = []
        for batch in _batches(talk.turns):
            tail = [_line(place, draft) for place, draft in enumerate(drafts)][-_TAIL:]
            began = time.process_time()
            drafts += extractive.observe(batch, tail)
            seconds += time.process_time() - began
        count += len(talk.turns)
        log[talk.name] = [_entry(draft, talk) for draft in drafts]
    return log, seconds, count


def _talk(sample: dict[str, Any]) -> Talk:
    """Both speakers by name, a session a conversation, a second a turn."""
    turns: list[Turn] = []
    place: dict[int, tuple[str, int]] = {}
    user = next(iter(sample["turns"].values()))["speaker"]
    for number, (key, said) in enumerate(sample["turns"].items()):
        began = datetime(said["date"].year, said["date"].month, said["date"].day, 12, tzinfo=UTC)
        role = Role.USER if said["speaker"] == user else Role.ASSISTANT
        at = began + timedelta(seconds=number)
        turns.append(Turn(number, said["session"], role, said["text"], at, tokens.count(said["text"]), said["speaker"]))
        place[number] = (key, said["session"])
    return Talk(sample["id"], turns, place)


def _batches(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    batch: list[Turn] = []
    for turn in turns:
        batch.append(turn)
        if sum(one.tokens for one in batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _line(number: int, draft: Draft) -> Line:
    return Line(number, draft.text, draft.kind, draft.priority, draft.observed_at, 0, draft.evidence, draft.refers_to)


def _entry(draft: Draft, talk: Talk) -> dict[str, Any]:
    return {
        "session": talk.place[draft.evidence[0]][1],
        "date": draft.observed_at.date().isoformat(),
        "text": draft.text,
        "src": [talk.place[turn][0] for turn in draft.evidence],
    }


def _reflected(samples: Sequence[dict[str, Any]], union: ModuleType) -> dict[str, list[dict[str, Any]]]:
    """What the reflector leaves of three accounts of the same sessions."""
    log: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        lines, sessions = _accounts(sample, union.union)
        reflection = condense.reflect(lines, int(_SHARE * sum(line.tokens for line in lines)))
        log[sample["id"]] = [_kept(line, sessions) for line in reflection.lines]
    return log


def _accounts(
    sample: dict[str, Any], union: Callable[[dict[str, Any]], Iterator[tuple[int, str]]]
) -> tuple[list[Line], dict[int, int]]:
    told = sorted((one for one in union(sample) if one[0] in sample["sessions"]), key=lambda one: one[0])
    lines = []
    for number, (session, text) in enumerate(told):
        day = sample["sessions"][session]
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(seconds=number)
        lines.append(Line(number, text, Kind.EVENT, Priority.MEDIUM, at, tokens.count(text)))
    return lines, {number: session for number, (session, _) in enumerate(told)}


def _kept(line: Rewritten, sessions: dict[int, int]) -> dict[str, Any]:
    return {"session": sessions[line.sources[0]], "date": line.observed_at.date().isoformat(), "text": line.text}


if __name__ == "__main__":
    main()
