"""What holds for any turns and any log: nothing breaks, nothing is invented, everything is accounted for."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import condense, dates, extractive, tokens
from memory.observation import MAX_TEXT, Interval, Kind, Line, Priority
from memory.sentences import LONGEST, split
from memory.turn import Role, Turn

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SPRING = datetime(2025, 5, 5, 9, tzinfo=UTC)
_PIECES = [
    *(
        "I",
        "we",
        "my",
        "you",
        "she",
        "it",
        "went",
        "love",
        "have",
        "will",
        "don't",
        "to",
        "and",
        "but",
        "that",
        "because",
    ),
    *(
        "Moss",
        "Iris",
        "Tomas",
        "Porto",
        "boat",
        "cello",
        "yesterday",
        "last week",
        "next Friday",
        "in May",
        "3 years ago",
    ),
    *(
        "2023-05-08",
        "31 February 2023",
        "$59.90",
        "10:30",
        "#A-1",
        "?",
        "!",
        ".",
        ",",
        ";",
        " - ",
        "...",
        "\n",
        "\n\n",
        '"',
        "“",
    ),
    *(
        "ontem",
        "la semana pasada",
        "昨天",
        "我",
        "了",
        "。",
        "？",
        "2023年5月8日",
        "👍",
        "\u202e",
        "\u200b",
        "\ufffd",
        "\x00",
        "```",
    ),
    *(
        "[shared image: a photo of a cat]",
        "[image",
        "</turn>",
        "Thanks",
        "Can you",
        "please",
        "not",
        "Actually",
        "從",
        "搬到",
        "it's",
    ),
]
texts = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=40).map(" ".join), st.text(max_size=200))
names = st.sampled_from([None, "Iris", "Tomas", "", " ", "Ana Beatriz", "我", "SupportBot"])


@st.composite
def talks(draw: st.DrawFn) -> list[Turn]:
    count = draw(st.integers(0, 12))
    return [
        Turn(
            id=number,
            conversation=draw(st.integers(1, 2)),
            role=draw(st.sampled_from([Role.USER, Role.USER, Role.ASSISTANT, Role.TOOL])),
            text=draw(texts),
            said_at=SPRING + timedelta(minutes=draw(st.integers(0, 2_000)) * number),
            tokens=1,
            name=draw(names),
        )
        for number in range(count)
    ]


intervals = st.builds(
    lambda start, length: Interval(start, start + timedelta(days=length)),
    st.dates(date(2020, 1, 1), date(2026, 1, 1)),
    st.integers(0, 40),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    lines = []
    for number in range(1, draw(st.integers(0, 15)) + 1):
        text = draw(texts.filter(str.strip))
        lines.append(
            Line(
                id=number,
                text=text,
                kind=draw(st.sampled_from(Kind)),
                priority=draw(st.sampled_from(Priority)),
                observed_at=SPRING + timedelta(hours=draw(st.integers(0, 100))),
                tokens=tokens.count(text),
                refers_to=draw(st.none() | intervals),
                supersedes=draw(st.none() | st.integers(1, 15).filter(lambda other, own=number: other != own)),  # type: ignore[misc]
            )
        )
    return lines


@unhurried
@given(talks(), logs())
def test_what_is_observed_cites_turns_of_people_and_keeps_to_its_bounds(turns: list[Turn], tail: list[Line]) -> None:
    said = {turn.id: turn for turn in turns}
    drafts = extractive.observe(turns, tail)
    assert drafts == extractive.observe(turns, tail)
    for draft in drafts:
        cited = [said[number] for number in draft.evidence]
        assert cited
        assert all(turn.role is not Role.TOOL for turn in cited)
        assert draft.observed_at == cited[0].said_at
        assert len({turn.conversation for turn in cited}) == 1
        assert 0 < len(draft.text.strip()) <= MAX_TEXT
        assert draft.refers_to is None or draft.refers_to.start <= draft.refers_to.end
        assert draft.supersedes is None or draft.supersedes in {line.id for line in tail}


@unhurried
@given(talks())
def test_turns_observed_again_bring_nothing_new(turns: list[Turn]) -> None:
    drafts = extractive.observe(turns, [])
    log = [
        Line(number, draft.text, draft.kind, draft.priority, draft.observed_at, 1, draft.evidence, draft.refers_to)
        for number, draft in enumerate(drafts)
    ]
    fresh = {draft.text for draft in extractive.observe(turns, log)} & {draft.text for draft in drafts}
    assert fresh == set()


@unhurried
@given(texts, st.datetimes(timezones=st.just(UTC)))
def test_dates_lie_where_they_were_said_and_never_overlap(text: str, said_at: datetime) -> None:
    end = 0
    for mention in dates.resolve(text, said_at):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.interval.start <= mention.interval.end
        end = mention.end


@unhurried
@given(texts)
def test_sentences_are_the_text_in_pieces(text: str) -> None:
    sentences = list(split(text))
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(0 < len(sentence) <= LONGEST for sentence in sentences)


@unhurried
@given(logs(), st.integers(1, 400))
def test_a_reflection_accounts_for_every_line_and_comes_under_its_threshold(lines: list[Line], threshold: int) -> None:
    reflection = condense.reflect(lines, threshold)
    cited = [source for line in reflection.lines for source in line.sources]
    assert sorted(cited + [dropped.id for dropped in reflection.dropped]) == [line.id for line in lines]
    size = sum(tokens.count(line.text) for line in reflection.lines)
    assert size < threshold or len(reflection.lines) == 1
    assert all(line.text.strip() and len(line.text) <= MAX_TEXT for line in reflection.lines)
    old = {line.id: line for line in lines}
    for line in reflection.lines:
        assert line.observed_at == min(old[source].observed_at for source in line.sources)
        assert {old[source].refers_to for source in line.sources} == {line.refers_to}


@unhurried
@given(logs())
def test_a_reflection_reflected_again_stays(lines: list[Line]) -> None:
    first = condense.reflect(lines, 1_000_000)
    again = [
        Line(number, line.text, line.kind, line.priority, line.observed_at, tokens.count(line.text), (), line.refers_to)
        for number, line in enumerate(first.lines, 1)
    ]
    assert len(condense.reflect(again, 1_000_000).lines) <= len(first.lines)
