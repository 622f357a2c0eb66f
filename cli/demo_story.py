"""What the demo tells: each step in a few lines, for somebody who sees it for the first time."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privacy.masking import mask

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Remembered:
    """A log once the workers have come to an end. `largest` counts its lines before it was rewritten, 0 if it was not."""

    coverage: Mapping[str, Any]
    generation: int
    tokens: int
    lines: Sequence[Mapping[str, Any]]
    largest: int


@dataclass(frozen=True, slots=True)
class Story:
    """What happened. `days` are the requests as they were posted, `parts` those of the next prompt."""

    url: str
    seconds: float
    days: Sequence[Mapping[str, Any]]
    before: Remembered
    after: Remembered
    parts: Sequence[Mapping[str, Any]]

    def document(self) -> dict[str, Any]:
        """All of it for a program."""
        return {
            "url": self.url,
            "turns": self.after.coverage["turns"],
            "generation": self.after.generation,
            "tokens": self.after.tokens,
            "observations": list(self.after.lines),
            "context": list(self.parts),
        }


def told(story: Story) -> Iterator[str]:
    """All of it for a person."""
    yield from _opening(story)
    yield from _conversation(story)
    yield from _observations(story)
    yield from _reflection(story)
    yield from _prompt(story)
    yield from _farewell()


def _opening(story: Story) -> Iterator[str]:
    yield from _heading("1. A deployment of its own")
    yield from _says(
        f"Two PostgreSQL servers (one for the data, one for the keys), Valkey, the API at {story.url}, a worker and a"
        f" scheduler were up after {story.seconds:.1f} seconds, in a folder that is gone again by now."
    )


def _conversation(story: Story) -> Iterator[str]:
    posted = story.days[:-1]
    turns = [turn for day in posted for turn in day["turns"]]
    yield from _heading("2. A person talks to an agent")
    yield from _says(
        f"Marta talks to the agent `{posted[0]['agent']}` on {len(posted)} days. The chat server posts each day's turns to"
        f" POST /v1/turns, {len(turns)} in all, and goes on with its life. One of them, as she wrote it and as it was"
        " stored, masked before it met a disk and sealed under her own key:"
    )
    yield ""
    said = next(text for turn in turns if mask(text := turn["content"]).spans)
    yield f"   said    {said}"
    yield f"   stored  {mask(said).text}"


def _observations(story: Story) -> Iterator[str]:
    before = story.before
    yield from _heading("3. What the worker made of it")
    turns = before.coverage["turns"]
    yield from _says(
        f"Every turn is accounted for: {turns['observed']} observed, {turns['pending']} pending,"
        f" {turns['skipped']} skipped. The log after these days, one dated line per fact, by the built-in model that works"
        " offline:"
    )
    yield ""
    yield from map(_line, before.lines)


def _reflection(story: Story) -> Iterator[str]:
    after = story.after
    yield from _heading("4. Another day, with a correction")
    correction = story.days[-1]["turns"][0]["content"]
    yield f"   said    {correction}"
    yield ""
    size = f" The log had grown to {after.largest} lines" if after.largest else " The log had outgrown its threshold"
    yield from _says(
        f"Ten more turns came in.{size}, so the reflector rewrote it: what says the same was merged, what was corrected"
        f" is replaced, the old is condensed harder than the new. This is generation {after.generation}, with"
        f" {len(after.lines)} lines in {after.tokens} tokens; the generations before are kept and can be restored:"
        if after.generation > 1
        else "Ten more turns came in:"
    )
    yield ""
    yield from map(_line, after.lines)


def _prompt(story: Story) -> Iterator[str]:
    yield from _heading("5. Before the next prompt")
    yield from _says("One call, POST /v1/context, answers with what belongs into it, within a budget of tokens:")
    yield ""
    for part in story.parts:
        yield from (f"   {line}" for line in str(part["text"]).splitlines())


def _farewell() -> Iterator[str]:
    yield from _heading("Where to go next")
    yield "   AFTERTURN_OBSERVATIONAL_MEMORY=1 afterturn up           the same, to keep"
    yield "   afterturn keys create --name chat --scopes turns:write,memory:read"
    yield "   afterturn import chats.jsonl --agent support --as canonical_user:ana"
    yield "   afterturn status                                        what waits, what runs, what went wrong"
    yield "   README.md, docs/                                        the API, the settings, operations"


def _heading(title: str) -> Iterator[str]:
    yield ""
    yield title
    yield "-" * len(title)


def _says(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, _WIDTH)


def _line(line: Mapping[str, Any]) -> str:
    about = line.get("refers_to")
    days = "" if not about else f"  [{about['start']}]" if about["start"] == about["end"] else _interval(about)
    return f"   {line['observed_at'][:10]}  {line['kind']:<10}  {line['text']}{days}"


def _interval(days: Mapping[str, str]) -> str:
    return f"  [{days['start']} to {days['end']}]"
