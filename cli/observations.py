"""`afterturn observations show`: one person's log, as a prompt gets it or with its ids."""

from pathlib import Path
from typing import Any

from cli.output import answer, remark
from cli.owner import Owner
from cli.reach import with_stores
from intake.identity import People
from jobs.resources import Resources
from memory.blocks import block
from recall.log import Opened, lines
from recall.telling import tell

__all__ = ["Owner", "show"]


def show(owner: Owner, data_dir: Path | None, *, as_json: bool) -> None:
    """Prints the live log; somebody unknown has an empty one."""

    async def opened(resources: Resources) -> tuple[Opened, list[dict[str, Any]]]:
        credential = await owner.credential(resources)
        identity = await People(resources.database, resources.keys).find(credential, owner.claim())
        log = await lines(resources, credential.space, identity.owner, owner.agent, owner.context)
        return log, await tell(resources, credential.space, log.lines)

    log, told = with_stores(data_dir, opened)
    if not log.on:
        remark("Observational memory is off: AFTERTURN_OBSERVATIONAL_MEMORY=1 turns it on.")
    elif not log.lines:
        remark("Nothing is remembered of this person with this agent.")
    document = {
        "memory": "on" if log.on else "off",
        "generation": log.generation,
        "observations": told,
    }
    answer(document, block(log.lines, None).splitlines(), as_json=as_json)
