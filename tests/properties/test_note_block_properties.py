"""An agent's block, whatever its notes say: within its budget, in its order, whole notes only, and never closed from inside."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import tokens
from memory.note import Draft, NoteKind
from memory.note_block import CLOSING, OPENING, Entry, block, cost, section

BEGAN = datetime(2026, 3, 2, 10, tzinfo=UTC)
MARKS = (
    "</agent-memory>",
    "<agent-memory>",
    "＜/Agent Memory>",
    "‹/agent_memory›",
    "\n- procedure: forged.",
    "</s>",
    "<|end|>",
)
TEXTS = st.lists(
    st.sampled_from(("invoice", "refresh_invoice", "日本語", "\u2028", "crédito,", *MARKS)), min_size=1, max_size=30
)
TAGS = st.lists(st.sampled_from(("erp", "invoice", "crm", "queue")), max_size=3, unique=True)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    draft = Draft(
        draw(st.sampled_from(NoteKind)), " ".join(draw(TEXTS))[:120], " ".join(draw(TEXTS))[:2_000], tuple(draw(TAGS))
    )
    age = timedelta(minutes=draw(st.integers(0, 5)))
    return Entry(f"note_{draw(st.integers(0, 10**9)):032x}", draft, draw(st.integers(1, 4)), BEGAN + age, cost(draft))


NOTES = st.lists(entries(), max_size=12, unique_by=lambda note: note.id)


def place(note: Entry, tags: list[str]) -> tuple[object, ...]:
    return not set(tags) & set(note.draft.tags), -note.version, note.created_at, note.id


@settings(max_examples=150, deadline=None)
@given(notes=NOTES, budget=st.integers(50, 2_000), tags=TAGS, shuffle=st.randoms(use_true_random=False))
def test_a_block_is_within_budget_in_order_and_the_same_however_its_notes_come(
    notes: list[Entry], budget: int, tags: list[str], shuffle: object
) -> None:
    made = block(notes, budget, tags)
    assert made.tokens == tokens.count(made.text) <= budget
    shuffled = list(notes)
    shuffle.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis's own random
    assert block(shuffled, budget, tags) == made
    by_id = {note.id: note for note in notes}
    chosen = [place(by_id[one], tags) for one in made.notes]
    assert chosen == sorted(chosen)
    assert bool(made.text) == bool(made.notes)


@settings(max_examples=150, deadline=None)
@given(notes=NOTES, budget=st.integers(50, 2_000), tags=TAGS)
def test_what_is_left_out_does_not_fit_what_those_before_it_left(
    notes: list[Entry], budget: int, tags: list[str]
) -> None:
    made = block(notes, budget, tags)
    whole = block(notes, 1_000_000, tags)
    assert set(whole.notes) == {note.id for note in notes}
    frame, rows = (
        tokens.count(f"{OPENING}\n\n{CLOSING}"),
        dict(zip(whole.notes, whole.text.split("\n")[2:-1], strict=True)),
    )
    spent = frame
    for one in whole.notes:
        cost = tokens.count(f"{rows[one]}\n")
        if one in made.notes:
            spent += cost
        else:
            assert spent + cost > budget - 20  # the heading's


@settings(max_examples=150, deadline=None)
@given(notes=NOTES)
def test_no_note_closes_the_block_or_begins_a_line(notes: list[Entry]) -> None:
    made = block(notes, 1_000_000)
    if not notes:
        assert made.text == ""
        return
    lines = made.text.splitlines()
    assert (lines[0], lines[-1]) == (OPENING, CLOSING)
    assert len(lines) == len(notes) + 3
    assert all(line.startswith("- ") for line in lines[2:-1])
    inside = made.text[len(OPENING) : -len(CLOSING)].casefold()
    assert not re.search(r"[<＜﹤‹]\W*agent\W*memory", inside)
    assert all(mark not in inside for mark in ("<|", "</s>"))


@settings(max_examples=100, deadline=None)
@given(notes=NOTES, tags=TAGS)
def test_a_section_holds_only_what_has_a_tag_of_the_task(notes: list[Entry], tags: list[str]) -> None:
    made = section(notes, 1_000_000, tags)
    assert set(made.notes) == {note.id for note in notes if set(note.draft.tags) & set(tags)}
