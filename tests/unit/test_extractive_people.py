"""Chats between named people, observed without a model."""

from datetime import UTC, date, datetime, timedelta

from memory import extractive
from memory.observation import Draft, Interval
from memory.turn import Role, Turn

NOON = datetime(2025, 6, 11, 12, tzinfo=UTC)  # a Wednesday


def chat(*said: tuple[str, str], at: datetime = NOON, conversation: int = 1, first: int = 1) -> list[Turn]:
    """(name, text) turn by turn; the first speaker has the user's role, the other the assistant's."""
    return [
        Turn(
            id=first + place,
            conversation=conversation,
            role=Role.USER if name == said[0][0] else Role.ASSISTANT,
            text=text,
            said_at=at + timedelta(seconds=place),
            tokens=len(text),
            name=name,
        )
        for place, (name, text) in enumerate(said)
    ]


def observed(*said: tuple[str, str]) -> list[Draft]:
    return extractive.observe(chat(*said), [])


def texts(*said: tuple[str, str]) -> list[str]:
    return [draft.text for draft in observed(*said)]


def test_both_speakers_are_people_and_each_line_says_who() -> None:
    drafts = observed(
        ("Iris", "I adopted a grey cat called Moss yesterday!"),
        ("Tomas", "Lovely! I started rowing at the lake club last Saturday."),
    )
    assert [draft.text for draft in drafts] == [
        "Iris: adopted grey cat called Moss 10 June 2025",
        "Tomas: started rowing at lake club 7 June 2025",
    ]
    assert [draft.evidence for draft in drafts] == [(1,), (2,)]
    assert drafts[0].refers_to == Interval(date(2025, 6, 10), date(2025, 6, 10))


def test_a_line_joins_what_one_of_them_says_on() -> None:
    (iris,) = (
        draft
        for draft in observed(
            ("Iris", "I'm building a greenhouse behind the barn."),
            ("Tomas", "What will you grow in it?"),
            ("Iris", "Mostly tomatoes, peppers and figs."),
        )
        if draft.text.startswith("Iris")
    )
    assert iris.evidence == (1, 3)
    assert "building greenhouse behind barn" in iris.text
    assert "tomatoes, peppers and figs" in iris.text


def test_one_line_has_one_time() -> None:
    drafts = observed(
        ("Iris", "I sold my boat yesterday."),
        ("Tomas", "Oh!"),
        ("Iris", "In March 2024 I bought a used tractor."),
    )
    assert [draft.refers_to and draft.refers_to.start for draft in drafts] == [date(2025, 6, 10), date(2024, 3, 1)]


def test_praise_of_the_other_is_not_the_speakers_own_fact() -> None:
    said = texts(
        ("Iris", "I ran the harbour marathon in Split last Sunday."),
        ("Tomas", "Wow Iris, you're so strong! You must have trained a lot. Great job!"),
    )
    assert len(said) == 1
    assert said[0].startswith("Iris: ran harbour marathon in Split")


def test_names_that_only_call_are_left_out_and_names_that_tell_stay() -> None:
    (said,) = texts(("Iris", "Thanks, Tomas! Moss and Fern chased the neighbour's goose."), ("Tomas", "Ha!"))
    assert said == "Iris: Moss and Fern chased neighbour's goose"


def test_you_is_who_listens() -> None:
    assert texts(("Iris", "I'll bring the red canoe to you on Friday."), ("Tomas", "Yay!")) == [
        "Iris: will bring red canoe to Tomas 13 June 2025"
    ]


def test_he_is_named_where_the_line_has_not_said_who() -> None:
    lines = texts(
        ("Iris", "My brother sails a wooden yacht from Split."),
        ("Tomas", "Nice, yesterday I repaired the mill wheel."),
        ("Iris", "He crossed the Adriatic alone in May 2021."),
        ("Tomas", "Wow."),
    )
    crossing = next(text for text in lines if "Adriatic" in text)
    assert "brother" in crossing


def test_company_goes_with_the_speaker() -> None:
    assert texts(("Iris", "My sister and I visited Zagreb last month."), ("Tomas", "Fun!")) == [
        "Iris: with sister visited Zagreb May 2025"
    ]


def test_denial_stays() -> None:
    assert texts(("Iris", "I don't eat mushrooms anymore."), ("Tomas", "Ok")) == ["Iris: doesn't eat mushrooms anymore"]


def test_a_picture_tells_what_it_shows() -> None:
    (draft,) = observed(("Iris", "Look! [shared image: a photo of a lighthouse on a cliff]"), ("Tomas", "Wow"))
    assert draft.text == "Iris: photo lighthouse cliff"


def test_how_long_something_lasted_stays_beside_since_when() -> None:
    assert texts(("Iris", "I've played the cello for seven years now."), ("Tomas", "Cool")) == [
        "Iris: played cello seven years (since 2018)"
    ]


def test_an_echo_adds_nothing() -> None:
    said = texts(
        ("Iris", "I joined the village choir in Trogir."),
        ("Tomas", "The village choir in Trogir sounds fun."),
        ("Iris", "Yes, the village choir is fun."),
    )
    assert said == ["Iris: joined village choir in Trogir"]


def test_a_named_machine_is_no_person() -> None:
    turns = chat(("Iris", "I keep bees in Omis."), ("SupportBot", "You surely own forty hives and love honey."))
    assert [draft.text for draft in extractive.observe(turns, [])] == ["Iris: keeps bees in Omis"]


def test_who_calls_tools_is_no_person_whatever_its_name() -> None:
    turns = chat(("Iris", "I keep bees in Omis."), ("Nova", "You surely own forty hives and love honey."))
    tool = Turn(9, 1, Role.TOOL, "{}", NOON, 1, tool_call_id="c1")
    assert [draft.text for draft in extractive.observe([*turns, tool], [])] == ["Iris: keeps bees in Omis"]


def test_a_talk_after_a_long_pause_begins_new_lines() -> None:
    morning = chat(("Iris", "I planted forty olive trees."), ("Tomas", "Where?"))
    evening = chat(("Iris", "The olive press arrived from Bari."), at=NOON + timedelta(hours=9), first=10)
    drafts = extractive.observe(morning + evening, [])
    assert [draft.evidence for draft in drafts] == [(1,), (10,)]


def test_several_conversations_keep_their_lines_apart() -> None:
    one = chat(("Iris", "I planted forty olive trees."), ("Tomas", "Where?"))
    other = chat(("Iris", "The olive press arrived from Bari."), ("Tomas", "Good"), conversation=2, first=10)
    assert [draft.evidence for draft in extractive.observe(one + other, [])] == [(1,), (10,)]
