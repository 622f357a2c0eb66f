"""`afterturn import`: files of chats, taken in as the API would take them, only without HTTP.

Messages have ids that stay the same when their file comes again, so an import that broke off is simply run again.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli.failure import Failed
from cli.output import answer, remark, shown
from cli.owner import Owner
from cli.reach import with_stores
from intake import files
from intake.accept import Intake, Said, SubjectErased
from intake.batcher import Batcher, OtherAgent
from intake.called import Called
from intake.files import Conversation, UnknownFormat, UnreadableFile
from intake.identity import People
from intake.rules import Rules
from jobs.resources import Resources, rhythm
from models.api_key import Credential
from privacy.policy import of_regions

__all__ = ["Owner", "run", "take_all"]

_AT_ONCE = 500  # turns of one call
_CONVERSATIONS_AT_ONCE = 64  # as many calls as one commit holds
_WEIGHT_AT_ONCE = 32 * 1024  # characters, and so many more for each turn: heavier conversations go alone
_WEIGHT_OF_A_TURN = 64
_WHYS = 5  # different reasons that are told of one file


@dataclass(slots=True)
class Report:
    """What became of one file. `undated` counts the messages without a time, which count as spoken now; `problem` says
    why it could not be read to its end."""

    file: str
    conversations: int = 0
    accepted: int = 0
    duplicates: int = 0
    undated: int = 0
    left_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    problem: str | None = None


def run(paths: Sequence[Path], owner: Owner, data_dir: Path | None, *, as_json: bool) -> None:
    """Takes the files in, one after the other. Failed when one could not be read to its end; the others go in."""
    reports = with_stores(data_dir, lambda resources: take_all(resources, paths, owner))
    answer(
        [_document(report) for report in reports], [line for one in reports for line in _lines(one)], as_json=as_json
    )
    broken = [report for report in reports if report.problem]
    if not broken and all(report.refused and not report.accepted + report.duplicates for report in reports):
        raise Failed("no message could be taken in")
    if broken:
        raise Failed(f"{broken[0].file} {broken[0].problem}{_and_more(len(broken) - 1)}")


async def take_all(resources: Resources, paths: Sequence[Path], owner: Owner) -> list[Report]:
    """Takes the files in through stores that are open; answers what became of each."""
    credential = await owner.credential(resources, make=True)
    memory_on = resources.settings.memory.observational_memory
    if not memory_on:
        remark("Observational memory is off here: these turns will be kept, and never observed.")
    async with asyncio.TaskGroup() as tasks:
        rhythm_here = rhythm(resources.settings)
        intake = Intake(
            people=People(resources.database, resources.keys),
            keys=resources.keys,
            batcher=Batcher(resources.database, resources.bell, rhythm_here, tasks),
            rules=Rules(resources.keys, of_regions(resources.settings.privacy.phone_regions)),
            rhythm=rhythm_here,
            memory_on=memory_on,
            called=Called(resources.database, resources.keys),
            has_models=resources.analyzer is not None,
        )
        door = Door(intake, credential, owner)
        with _progress(len(paths)) as gauge:
            return [await door.take(path, gauge) for path in paths]


@dataclass(frozen=True, slots=True)
class Door:
    """Where the conversations of files come in, all of one person with one agent."""

    intake: Intake
    credential: Credential
    owner: Owner

    async def take(self, path: Path, gauge: "Gauge") -> Report:
        """Takes one file in, as far as it can be read."""
        report = Report(str(path))
        gauge.begins(path)
        for several in _several(path, report):
            await self._take_several(several, report)
            gauge.grew(report)
        gauge.ends()
        return report

    async def _take_several(self, several: Sequence[Conversation], report: Report) -> None:
        # The first looks up whose they are. The others find it known, so none waits for anything before the commit that
        # they share, and they go in in their order.
        await self._take_conversation(several[0], report)
        async with asyncio.TaskGroup() as calls:
            for conversation in several[1:]:
                calls.create_task(self._take_conversation(conversation, report))

    async def _take_conversation(self, conversation: Conversation, report: Report) -> None:
        report.conversations += 1
        report.undated += sum(message.said_at is None for message in conversation.messages)
        report.left_out += conversation.left_out
        report.refused.update(why for _, why in conversation.refused)
        for first in range(0, len(conversation.messages), _AT_ONCE):
            messages = conversation.messages[first : first + _AT_ONCE]
            said = Said(self.owner.agent, conversation.id, messages, context=self.owner.context)
            try:
                took = (await self.intake.accept(self.credential, self.owner.claim(), said)).took
            except OtherAgent:
                report.refused["its conversation belongs to another agent"] += len(messages)
            except SubjectErased:
                report.refused["it was said before an erasure of its person"] += len(messages)
            else:
                report.accepted += took.accepted
                report.duplicates += took.duplicates


def _several(path: Path, report: Report) -> Iterator[list[Conversation]]:
    """The conversations of a file, in order, as many at once as make a good commit."""
    several: list[Conversation] = []
    weight = 0
    try:
        for conversation in files.conversations(path):
            more = _weight(conversation)
            if several and (len(several) == _CONVERSATIONS_AT_ONCE or weight + more > _WEIGHT_AT_ONCE):
                yield several
                several, weight = [], 0
            several.append(conversation)
            weight += more
    except (UnreadableFile, UnknownFormat) as error:
        report.problem = str(error)
    except OSError as error:
        report.problem = f"cannot be read: {error.strerror}"
    if several:
        yield several


def _weight(conversation: Conversation) -> int:
    return sum(
        _WEIGHT_OF_A_TURN + len(message.text) + sum(len(call.arguments) for call in message.tool_calls)
        for message in conversation.messages
    )


class Gauge:
    """How far the import is, on standard error: a bar on a terminal, a line for each file elsewhere."""

    def __init__(self, progress: Progress | None, files: int) -> None:
        self._progress, self._files, self._begun = progress, files, 0
        self._task = progress.add_task("", total=files, turns=0) if progress else None

    def begins(self, path: Path) -> None:
        self._begun += 1
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=shown(path.name))
        elif self._files > 1:
            remark(f"[{self._begun}/{self._files}] {path}")

    def grew(self, report: Report) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, turns=report.accepted + report.duplicates)

    def ends(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)


@contextmanager
def _progress(files: int) -> Iterator[Gauge]:
    if not sys.stderr.isatty():
        yield Gauge(None, files)
        return
    columns = (
        *(TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("files, {task.fields[turns]} turns of this one"), TimeElapsedColumn()),
    )
    # Standard output is not the bar's to redirect: it may be a pipe.
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False) as progress:
        yield Gauge(progress, files)


def _document(report: Report) -> dict[str, object]:
    return {
        "file": report.file,
        "conversations": report.conversations,
        "accepted": report.accepted,
        "duplicates": report.duplicates,
        "refused": dict(report.refused),
        "undated": report.undated,
        "left_out": report.left_out,
        "problem": report.problem,
    }


def _lines(report: Report) -> Iterator[str]:
    taken = f"{report.accepted} turns accepted, {report.duplicates} known already"
    refused = f", {report.refused.total()} refused" if report.refused else ""
    yield f"{report.file}: {report.conversations} conversations, {taken}{refused}"
    if report.problem:
        yield f"  not read to its end: it {report.problem}"
    if report.undated:
        yield f"  undated: {report.undated} turns carry no time, so they count as spoken today: their yesterday is yesterday"
    if report.left_out:
        yield f"  {report.left_out} messages on branches that their chats did not go on with are left out"
    for why, often in report.refused.most_common(_WHYS):
        yield f"  refused {often}: {why}"
    if len(report.refused) > _WHYS:
        yield f"  and for {len(report.refused) - _WHYS} reasons more"


def _and_more(files: int) -> str:
    return f" (and {files} files more)" if files else ""
