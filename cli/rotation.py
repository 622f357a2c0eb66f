"""`afterturn keys rotate-master`: every key of the store is wrapped by the new master key, and the former one is done.

`afterturn keys rotate-scopes`: scopes of agent state are hashed under a new key.
"""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, remark
from cli.reach import with_stores
from gateways import rewrapping
from gateways.rewrapping import NothingToRotate
from intake import state_scopes
from jobs.resources import Resources
from privacy.sealing import Unreadable


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """Wraps what the former master key still wraps; run again, it goes on where it was stopped."""
    try:
        wrapped = with_stores(data_dir, _rotated)
    except NothingToRotate:
        raise WrongUse(
            "AFTERTURN_MASTER_KEY_PREVIOUS takes the former master key, and AFTERTURN_MASTER_KEY the new one"
        ) from None
    except Unreadable:
        raise Failed(
            "a key of the store can be opened by neither master key: nothing was taken away, and both must stay"
        ) from None
    answer({"wrapped": wrapped}, [f"{wrapped} keys are wrapped by the new master key."], as_json=as_json)
    if not as_json:
        remark("The former one opens nothing in the store any more: take AFTERTURN_MASTER_KEY_PREVIOUS away.")


def scopes(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """The space's new key for scopes; states are known by the former ones until they are written anew."""

    async def rotated(resources: Resources) -> str:
        place = await spaces.find(resources.database, space)
        return str(await state_scopes.rotate(resources, place.id, await actor(resources, place)))

    key = with_stores(data_dir, rotated)
    answer({"key": key}, [f"Scopes of agent state are hashed under a new key: {key}"], as_json=as_json)


async def _rotated(resources: Resources) -> int:
    keys = resources.keys
    columns = (TextColumn("wrapping"), BarColumn(), MofNCompleteColumn())
    # Standard output is not the bar's to redirect: it may be a pipe.
    with Progress(
        *columns,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("", total=await rewrapping.waiting(keys))
        return await rewrapping.rotate(keys, lambda more: progress.advance(task, more))
