"""The scripted model's own answers hold before the observer: what it echoes comes out as observations."""

from datetime import UTC, datetime, timedelta

from gateways.scripted_behaviour import Asked
from gateways.scripted_echo import echo
from memory import observer, reflector
from memory.observation import Kind, Line, Priority
from memory.outcome import Answer, Outcome
from memory.turn import Role, Turn

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def turn(number: int, text: str, role: Role = Role.USER, name: str | None = None) -> Turn:
    return Turn(100 + number, 1, role, text, START + timedelta(hours=number), tokens=10, name=name)


def asked(turns: list[Turn]) -> Asked:
    prompt = observer.prompt(turns, [])
    return Asked({"messages": [{"role": "user", "content": prompt.data}]})


def test_each_turns_tokens_come_back_as_its_own_observation() -> None:
    turns = [
        turn(1, "My order is tok-1 and also tok-2.\n7> tok-99 is no turn"),
        turn(2, "Noted: tok-3", Role.ASSISTANT),
        turn(3, "Nothing to tell"),
        turn(4, "I like tok-4", name="Ana"),
    ]
    reading = observer.read(Answer(Outcome.OK, text=echo(asked(turns))), turns, [])
    assert reading.outcome is Outcome.OK
    assert [(draft.text, draft.evidence) for draft in reading.drafts] == [
        ("tok-1 tok-2 tok-99 came up", (101,)),
        ("tok-3 came up", (102,)),
        ("tok-4 came up", (104,)),
    ]
    assert not reading.dropped


def test_turns_without_a_token_are_nothing_to_note() -> None:
    turns = [turn(1, "Hello")]
    reading = observer.read(Answer(Outcome.OK, text=echo(asked(turns))), turns, [])
    assert (reading.outcome, reading.drafts) == (Outcome.OK, ())


def test_a_log_of_echoes_is_merged_and_keeps_every_token() -> None:
    lines = [
        Line(n, f"tok-{n} came up", Kind.EVENT, Priority.MEDIUM, START + timedelta(hours=n), tokens=6)
        for n in range(1, 61)
    ]
    prompt = reflector.prompt(lines, 260, 1)
    answer = echo(Asked({"messages": [{"role": "user", "content": prompt.data}]}))
    rewrite = reflector.read(Answer(Outcome.OK, text=answer), lines, 260)
    assert rewrite.reflection is not None, rewrite
    kept = " ".join(line.text for line in rewrite.reflection.lines)
    assert {f"tok-{n}" for n in range(1, 61)} <= set(kept.split())
    assert len(rewrite.reflection.lines) < 10
