"""Turns into one note about the work, by rules: sequences that worked, what failed before, corrections, stated rules.

Nothing of a customer's is in it: tools and parameters go by their names, sentences only where nobody's value is in them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory import deeds, stated
from memory.checks import normalise
from memory.deeds import Call
from memory.impersonal import Own
from memory.note import LONGEST_BODY, LONGEST_TITLE, MOST_TAGS, Draft, NoteKind, folded_tags
from memory.turn import Role, Turn

_LEAST_STEPS = 3  # of a run in which nothing failed, one of them a call
_MOST_RULES, _MOST_PITFALLS = 6, 8
_MOST_NAMES = 12  # parameters of one call that are named
_LONGEST_COMPLAINT = 160  # characters
_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,63}")
_OF_A_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TALK = frozenset(["think", "thinking"])  # tools by which a model talks to itself
_FILLING = frozenset(["get", "set", "the", "for", "and", "all", "api", "tool", "of", "to"])


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done: a question, or a call that worked. `key` is the same for the same thing done again."""

    key: str
    text: str
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What there is to tell."""

    steps: Sequence[Step]
    pitfalls: Sequence[str]
    corrections: Sequence[str]
    rules: Sequence[str]
    recovered: bool

    @property
    def is_procedure(self) -> bool:
        """Whether the steps are worth keeping: something failed first, or they are several."""
        made = sum(step.call is not None for step in self.steps)
        return made > 0 and (self.recovered or bool(self.corrections) or len(self.steps) >= _LEAST_STEPS)


def distil(turns: Sequence[Turn]) -> Draft | None:
    """The note, or None where nothing could be used again. `turns` are masked, in conversation order."""
    made = [call for call in deeds.calls(turns) if _NAME.fullmatch(call.name) and call.name not in _TALK]
    own = Own.of(turns, made)
    pitfalls = list(_pitfalls(made, own))
    learned = Learned(
        steps=list(_steps(turns, made, own)),
        pitfalls=_once(text for text, _ in pitfalls)[:_MOST_PITFALLS],
        corrections=_once(stated.corrections(turns, own))[:_MOST_RULES],
        rules=_once(_rules(turns, made, own))[:_MOST_RULES],
        recovered=any(helped for _, helped in pitfalls),
    )
    if learned.is_procedure:
        return _procedure(learned)
    return _of_rules(learned, made) if learned.corrections or learned.rules else None


def _steps(turns: Sequence[Turn], made: Sequence[Call], own: Own) -> Iterator[Step]:
    """Questions and calls that worked, each where it first came."""
    done: set[str] = set()
    by_turn: dict[int, list[Call]] = {}
    for call in made:
        by_turn.setdefault(call.at, []).append(call)
    for at, turn in enumerate(turns):
        asks = stated.asked(turn, own) if turn.role is Role.ASSISTANT else ()
        steps = [Step(normalise(ask), f"Ask: {ask}") for ask in asks]
        steps += [_called(call, turns, own) for call in by_turn.get(at, ()) if not call.failed]
        for step in steps:
            if step.key not in done:
                done.add(step.key)
                yield step


def _called(call: Call, turns: Sequence[Turn], own: Own) -> Step:
    names = [name for name in call.arguments if _NAME.fullmatch(name) and own.free(_spaced(name))][:_MOST_NAMES]
    mode = call.mode.partition(" ")
    given = [f"{name} {mode[2]}" if name == mode[0] and own.free(mode[2]) else name for name in names]
    told = [name for name in _told_of(call, turns) if own.free(f"the {_spaced(name)}")]
    text = f"Call {call.name}" + (f" with {', '.join(given)}" if given else "")
    return Step(f"{call.name} {call.mode}", text + (f"; tell {', '.join(told)}" if told else ""), call)


def _told_of(call: Call, turns: Sequence[Turn]) -> list[str]:
    """The members of its result that the assistant told of next."""
    result = deeds.result_of(call)
    after = next((turn.text for turn in turns[call.at + 1 : call.at + 4] if turn.role is Role.ASSISTANT), "").casefold()
    if not isinstance(result, dict) or not after:
        return []
    plain = {name: str(value) for name, value in result.items() if isinstance(value, str | int | float)}
    return [name for name, value in plain.items() if _NAME.fullmatch(name) and value and value.casefold() in after][:6]


def _pitfalls(made: Sequence[Call], own: Own) -> Iterator[tuple[str, bool]]:
    """What a tool complained of, and whether the same tool worked afterwards, and what had changed by then."""
    for nth, call in enumerate(made):
        if not call.failed:
            continue
        worked = next((at for at in range(nth + 1, len(made)) if _same(made[at], call) and not made[at].failed), None)
        said = own.bare(call.complaint)[:_LONGEST_COMPLAINT].strip(" .") if call.complaint else ""
        what = f'{call.name} answered "{said}"' if said.strip("… ") else f"{call.name} found nothing"
        yield (what, False) if worked is None else (f"{what}; {_change(made, nth, worked, own)}", True)


def _same(one: Call, other: Call) -> bool:
    return one.name == other.name and one.mode == other.mode


def _change(made: Sequence[Call], failed: int, worked: int, own: Own) -> str:
    before, after = made[failed].arguments, made[worked].arguments
    names = [name for name in after if _NAME.fullmatch(name) and own.free(_spaced(name))][:_MOST_NAMES]
    added = [name for name in names if name not in before]
    other = [name for name in names if name in before and before[name] != after[name]]
    between = _once(
        call.name for call in made[failed + 1 : worked] if call.name != made[failed].name and not call.failed
    )
    parts = [f"after {', '.join(between)}"] if between else []
    parts += [f"with {', '.join(added)} given as well"] if added else []
    parts += [f"with another {', '.join(other)}"] if other else []
    return f"it worked {' and '.join(parts)}" if parts else "the same call worked later"


def _rules(turns: Sequence[Turn], made: Sequence[Call], own: Own) -> Iterator[str]:
    """Rules that somebody stated while work was done; without any, only those that a person stated."""
    for turn in turns:
        if turn.role is Role.USER or (turn.role is Role.ASSISTANT and made):
            yield from stated.rules(turn, own)


def _procedure(learned: Learned) -> Draft:
    made = [step.call for step in learned.steps if step.call is not None]
    body = _fitted(learned)
    return Draft(NoteKind.PROCEDURE, _title("Steps that worked: ", made), body, _tags(made))


def _of_rules(learned: Learned, made: Sequence[Call]) -> Draft:
    lines = [*(f"- {text}" for text in (*learned.corrections, *learned.rules))]
    first = (*learned.corrections, *learned.rules)[0]
    title = first if len(first) <= LONGEST_TITLE else first[: LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "…"
    body = "\n".join([*_headed("As it was stated:", lines), *_headed("What failed:", _bullets(learned.pitfalls))])
    return Draft(NoteKind.PROCESS_NOTE, title, body[:LONGEST_BODY], _tags(made))


def _fitted(learned: Learned) -> str:
    """All of it, or as much as a note takes: rules and pitfalls give way before steps, questions before calls."""
    steps, pitfalls = list(learned.steps), list(learned.pitfalls)
    corrections, rules = list(learned.corrections), list(learned.rules)
    while True:
        numbered = [f"{number}. {step.text}" for number, step in enumerate(steps, 1)]
        body = "\n".join(
            [
                *_headed("In the order in which it worked:", numbered),
                *_headed("What failed, and what helped:", _bullets(pitfalls)),
                *_headed("Corrected by a person:", _bullets(corrections)),
                *_headed("Rules that were stated:", _bullets(rules)),
            ]
        )
        if len(body) <= LONGEST_BODY:
            return body
        if rules or len(pitfalls) > 1:
            (rules or pitfalls).pop()
        elif len(steps) > 1:
            steps.remove(next((step for step in reversed(steps) if step.call is None), steps[-1]))
        else:
            (pitfalls or corrections).pop()


def _headed(heading: str, lines: Sequence[str]) -> list[str]:
    return [heading, *lines] if lines else []


def _bullets(texts: Iterable[str]) -> list[str]:
    return [f"- {text}" for text in texts]


def _title(lead: str, made: Sequence[Call]) -> str:
    names = _once(call.name for call in made)
    title = lead + ", ".join(names)
    while len(title) > LONGEST_TITLE and len(names) > 1:
        names = names[:-1]
        title = f"{lead}{', '.join(names)} …"
    return title[:LONGEST_TITLE]


def _tags(made: Sequence[Call]) -> tuple[str, ...]:
    words = [word for call in made for word in _OF_A_NAME.findall(call.name)]
    return folded_tags(word for word in words if len(word) > 2 and word.lower() not in _FILLING)[:MOST_TAGS]


def _spaced(name: str) -> str:
    return " ".join(_OF_A_NAME.findall(name)) or name


def _once(texts: Iterable[str]) -> list[str]:
    return list({normalise(text): text for text in texts}.values())
