"""`afterturn quarantine`: turns that no answer could be had about, listed and sent back."""

from collections.abc import Sequence
from pathlib import Path

from cli import spaces
from cli.failure import Failed, WrongUse
from cli.output import answer, remark, table
from cli.reach import with_stores
from jobs.resources import Resources
from models import quarantine
from models.quarantine import Quarantined
from recall.quarantine import NotQuarantined, ReleasedAlready
from recall.quarantine import retry as release

_TITLES = ("ID", "REASON", "ATTEMPTS", "SINCE")


def show(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Lists what is set aside in a space, oldest first."""
    records = with_stores(data_dir, lambda resources: _held(resources, space))
    rows = [(record.id, record.reason, len(record.attempts), record.created_at) for record in records]
    answer([_document(record) for record in records], table(rows, _TITLES), as_json=as_json)


def retry(space: str, ids: Sequence[int], data_dir: Path | None, *, every: bool, as_json: bool) -> None:
    """Sends the named turns, or every one, back to their logs. Failed when one of those named is not set aside."""
    if bool(ids) == every:
        raise WrongUse("quarantine retry takes ids, or --all")

    async def released(resources: Resources) -> tuple[list[int], list[int]]:
        wanted = [record.id for record in await _held(resources, space)] if every else list(dict.fromkeys(ids))
        done = [one for one in wanted if await _release(resources, space, one)]
        return done, [one for one in wanted if one not in done]

    done, not_held = with_stores(data_dir, released)
    answer({"retried": done, "not_held": not_held}, [f"{one} is pending again." for one in done], as_json=as_json)
    if not done and not not_held:
        remark("Nothing is set aside.")
    if not_held and not every:
        raise Failed(f"not set aside in {space}: {', '.join(map(str, not_held))}")


async def _held(resources: Resources, space: str) -> Sequence[Quarantined]:
    place = await spaces.find(resources.database, space)
    async with resources.database.begin(place.id) as tx:
        return await quarantine.held(tx, place.id)


async def _release(resources: Resources, space: str, record_id: int) -> bool:
    place = await spaces.find(resources.database, space)
    try:
        due = await release(resources, place.id, None, record_id)  # of whichever agent
    except (NotQuarantined, ReleasedAlready):
        return False
    await resources.bell.ring(due)
    return True


def _document(record: Quarantined) -> dict[str, object]:
    return {
        "id": record.id,
        "turn_id": record.turn_id,
        "reason": record.reason,
        "attempts": record.attempts,
        "created_at": record.created_at,
    }
