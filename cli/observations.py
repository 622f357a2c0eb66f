"""`afterturn observations show`: one person's log, as a prompt gets it or with its ids."""

from pathlib import Path

from cli.output import answer, remark
from cli.owner import Owner
from cli.reach import with_stores
from intake.identity import People
from jobs.resources import Resources
from memory.blocks import block
from memory.observation import Line
from recall.log import Opened, lines

__all__ = ["Owner", "show"]


def show(owner: Owner, data_dir: Path | None, *, as_json: bool) -> None:
    """Prints the live log; somebody unknown has an empty one."""

    async def opened(resources: Resources) -> Opened:
        credential = await owner.credential(resources)
        identity = await People(resources.database, resources.keys).find(credential, owner.claim())
        return await lines(resources, credential.space, identity.owner, owner.agent, owner.context)

    log = with_stores(data_dir, opened)
    if not log.on:
        remark("Observational memory is off: AFTERTURN_OBSERVATIONAL_MEMORY=1 turns it on.")
    elif not log.lines:
        remark("Nothing is remembered of this person with this agent.")
    document = {
        "memory": "on" if log.on else "off",
        "generation": log.generation,
        "observations": [_document(line) for line in log.lines],
    }
    answer(document, block(log.lines, None).splitlines(), as_json=as_json)


def _document(line: Line) -> dict[str, object]:
    days = line.refers_to
    return {
        "id": line.id,
        "text": line.text,
        "kind": line.kind,
        "priority": line.priority,
        "observed_at": line.observed_at,
        "refers_to": None if days is None else {"start": days.start, "end": days.end},
        "tokens": line.tokens,
        "evidence": list(line.evidence),
        "supersedes": line.supersedes,
    }
