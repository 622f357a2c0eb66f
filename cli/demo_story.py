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


def beginning() -> Iterator[str]:
    yield from _heading("1. A deployment of its own")
    yield from _says(
        "Two PostgreSQL servers (one for the data, one for the keys), Valkey, api, worker, scheduler: starting …"
    )


def started(url: str, seconds: float) -> Iterator[str]:
    yield from _says(f"Ready after {seconds:.0f} seconds, in a temporary folder. The API answers at {url}")


def posted(days: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    turns = [turn for day in days for turn in day["turns"]]
    yield from _heading("2. A person talks to an agent")
    yield from _says(
        f"Marta talks to the agent `{days[0]['agent']}` on {len(days)} days. The chat server posts each day's turns to"
        f" POST /v1/turns, {len(turns)} in all, and goes on with its life. One of them, as she wrote it and as it is"
        " stored: masked before it meets a disk, then sealed under a key of her own."
    )
    yield ""
    said = next(text for turn in turns if mask(text := turn["content"]).spans)
    yield f"   said    {said}"
    yield f"   stored  {mask(said).text}"


def observed(log: Remembered) -> Iterator[str]:
    yield from _heading("3. After the turn, a worker observes")
    turns = log.coverage["turns"]
    yield from _says(
        f"Every turn is accounted for: {turns['observed']} observed, {turns['pending']} pending, {turns['skipped']} skipped."
        " Her log, one dated line per fact, by the built-in model, which works offline:"
    )
    yield ""
    yield from map(_line, log.lines)


def reflected(day: Mapping[str, Any], before: Remembered, after: Remembered) -> Iterator[str]:
    yield from _heading("4. Another day, with a correction")
    yield f"   said    {day['turns'][0]['content']}"
    yield ""
    turns = len(day["turns"])
    if after.generation == before.generation:
        yield from _says(f"{turns} more turns came in.")
    else:
        grown = f"to {after.largest} lines" if after.largest else "past its threshold"
        yield from _says(
            f"{turns} more turns came in. The log had grown {grown}, so the reflector rewrote it: what was corrected is"
            " replaced, what says the same is merged, the old is condensed harder than the new. It is generation"
            f" {after.generation} now, {len(after.lines)} lines in {after.tokens} tokens; the one before is kept and can be"
            " restored. What changed:"
        )
    yield ""
    old, new = {line["text"] for line in before.lines}, {line["text"] for line in after.lines}
    yield from (f" - {_line(line).lstrip()}" for line in before.lines if line["text"] not in new)
    yield from (f" + {_line(line).lstrip()}" for line in after.lines if line["text"] not in old)


def prompt(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from _heading("5. Before the next prompt")
    tokens = sum(part["tokens"] for part in parts)
    yield from _says(f"One call, POST /v1/context, answers with what belongs into it: {tokens} tokens here.")
    yield ""
    for part in parts:
        yield from (f"   {line}" for line in str(part["text"]).splitlines())


def exported(package: Mapping[str, Any]) -> Iterator[str]:
    yield from _heading("6. She asks what is held about her")
    counts = sorted(package["counts"].items(), key=lambda counted: -counted[1])
    held = ", ".join(f"{name} {rows}" for name, rows in counts if rows)
    yield from _says(
        f"An operator posts to /v1/exports; a worker makes one package of everything, as of one instant: {held}. It is"
        f" {package['bytes']:,} bytes of JSON Lines, a page to read and checksums, sealed at rest under her own key."
    )


def erased(certificate: Mapping[str, Any], flaws: Sequence[str]) -> Iterator[str]:
    yield from _heading("7. She asks to be forgotten")
    rows, scan = sum(certificate["rows"].values()), certificate["scan"]
    looked = scan["looked_at"]
    found = "nothing of her was found" if scan["clean"] else f"something was found: {scan['found']}"
    holds = "the certificate's signature and its receipt hold" if not flaws else "; ".join(flaws)
    yield from _says(
        f"An operator posts to /v1/erasures. {rows} rows are gone and her key is destroyed, so no backup can be read"
        f" either. Then everything is searched for her: {looked['tables']} tables, {looked['columns']} columns,"
        f" {looked['redis_keys']} Redis keys: {found}. Checked without the server: {holds}."
    )


def farewell() -> Iterator[str]:
    yield from _heading("Where to go next")
    yield "   AFTERTURN_OBSERVATIONAL_MEMORY=1 afterturn up                        the same, to keep"
    yield "   afterturn keys create --name chat --scopes turns:write,memory:read   a key for a chat server"
    yield "   afterturn import FILE --agent support --as owner:ana                 chats that you have already"
    yield "   afterturn status                                                     what waits, what runs"
    yield "   README.md, docs/                                                     the API, the settings, operations"
    yield "   (in a clone the command is .venv/bin/afterturn)"
    yield ""
    yield "Stopping, and removing the temporary folder …"


def _heading(title: str) -> Iterator[str]:
    yield ""
    yield title
    yield "-" * len(title)


def _says(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, _WIDTH)


def _line(line: Mapping[str, Any]) -> str:
    return f"   {line['observed_at'][:10]}  {line['kind']:<10}  {line['text']}{_days(line.get('refers_to'))}"


def _days(days: Mapping[str, str] | None) -> str:
    if days is None:
        return ""
    return f"  [{days['start']}]" if days["start"] == days["end"] else f"  [{days['start']} to {days['end']}]"
