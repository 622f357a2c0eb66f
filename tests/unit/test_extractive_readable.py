"""A note can be read by a person who was not there: whom it means, which one, how much."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.extractive import observe
from memory.turn import Role, Turn

NOON = datetime(2026, 4, 14, 12, tzinfo=UTC)


def noted(*said: str, reply: str = "") -> list[str]:
    """The lines of what one person says to an agent, which answers `reply` each time."""
    turns = []
    for place, text in enumerate(said):
        at = NOON + timedelta(minutes=place)
        turns.append(Turn(2 * place + 1, 1, Role.USER, text, at, 10))
        if reply:
            turns.append(Turn(2 * place + 2, 1, Role.ASSISTANT, reply, at + timedelta(seconds=9), 2))
    return [draft.text for draft in observe(turns, [])]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (("A minha irmã Benedita mora em Faro.", "Ela trabalha num navio."), "Irmã Benedita trabalha num navio"),
        (("O meu filho Tomé faz judo.", "Ele perdeu o cinto azul."), "Filho Tomé perdeu o cinto azul"),
        (("Mi jefa, Amparo, vive en Lugo.", "Ella no trabaja los martes."), "Jefa, Amparo no trabaja los martes"),
        (("Mi abuelo vive solo en Jaca.", "Él no oye bien el teléfono."), "Abuelo no oye bien el teléfono"),
        (("我妈妈住在苏州。", "她不能吃海鲜。"), "妈妈不能吃海鲜"),
    ],
)
def test_she_and_he_are_named_in_other_languages_too(said: tuple[str, ...], told: str) -> None:
    assert any(told in line for line in noted(*said))


def test_a_pronoun_of_nobody_known_stays() -> None:
    assert noted("Ela não trabalha num navio de carga.") == ["Usuário: Ela não trabalha num navio de carga"]
    assert noted("我妈妈住在苏州。", "她们都不能吃海鲜。")[-1] == "用户: 她们都不能吃海鲜"


def test_he_who_is_something_is_named_in_english() -> None:
    assert "brother is plumber in Hull" in " ".join(noted("My brother came by.", "He's a plumber in Hull."))


def test_a_short_sentence_of_a_near_language_keeps_the_label_of_the_talk() -> None:
    said = noted(
        "A minha avó vive em Évora e não tem telemóvel.", "Prefiro que me contactem por carta.", reply="Claro, anotado."
    )
    assert said
    assert all(line.startswith("Usuário: ") for line in said)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("We decided to go with the green one.", "green one"),
        ("I ordered the one with the copper lid.", "one with copper lid"),
        ("My budget for the stove is 300 euros at most.", "at most 300 euros"),
        ("I need to sort out the boiler in the cellar.", "sort out boiler"),
        ("My aunt is visiting in June and she can't do stairs.", "can't do stairs"),
    ],
)
def test_a_note_does_not_end_before_what_it_is_about(said: str, told: str) -> None:
    assert told in " ".join(noted(said))
