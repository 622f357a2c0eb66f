"""`afterturn retention`: how long each data set is kept, what other terms would take, and a sweep at once."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from cli import spaces
from cli.failure import WrongUse
from cli.output import answer, table
from cli.reach import with_stores
from jobs.letters import expire_letter
from jobs.resources import Resources
from models import retention, work
from models.database import driver
from models.kept import KEPT, written
from models.retention import Terms


def show(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """The space's terms."""
    terms, version = with_stores(data_dir, lambda resources: _terms(resources, space))
    said = {name: written(terms.of(name)) for name in KEPT}
    loss = "with_source" if terms.with_source else "keep"
    lines = [*table(said.items(), ("DATA SET", "TERM")), f"on_source_loss  {loss}", f"version         {version}"]
    answer({"version": version, "on_source_loss": loss, **said}, lines, as_json=as_json)


def preview(space: str, changes: Sequence[str], data_dir: Path | None, *, as_json: bool) -> None:
    """How many rows the space's terms, with `changes` as NAME=TERM, would take besides what is past already."""
    changed = _read(changes)

    async def counted(resources: Resources) -> Mapping[str, int]:
        now, _ = await _terms(resources, space)
        terms = Terms({name: changed.get(name, now.of(name)) for name in KEPT}, now.with_source)
        place = await spaces.find(resources.database, space)
        async with resources.database.begin(place.id) as tx:
            return await retention.preview(await driver(tx), place.id, terms)

    rows = with_stores(data_dir, counted)
    answer({"rows": dict(rows)}, table(rows.items(), ("DATA SET", "ROWS")), as_json=as_json)


def run(space: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Has a worker sweep the space now instead of within the minute."""

    async def asked(resources: Resources) -> None:
        place = await spaces.find(resources.database, space)
        async with resources.database.begin(place.id) as tx:
            added = await work.add_many(await driver(tx), [(expire_letter(place.id), None)])
        await resources.bell.ring(added)

    with_stores(data_dir, asked)
    lines = ["A worker deletes what is past its term. A receipt, retention.swept, says how much where it was anything."]
    answer({"space": space, "due": True}, lines, as_json=as_json)


async def _terms(resources: Resources, name: str) -> tuple[Terms, int]:
    """What holds now: until a document was set, the deployment's own."""
    place = await spaces.find(resources.database, name)
    async with resources.database.begin(place.id) as tx:
        terms, version = await retention.read(await driver(tx), place.id)
    return (terms if version else Terms({"job_records": resources.settings.workers.job_records})), version


def _read(changes: Sequence[str]) -> dict[str, timedelta | None]:
    terms: dict[str, timedelta | None] = {}
    for change in changes:
        name, _, term = change.partition("=")
        if name not in KEPT:
            raise WrongUse(f"a term is one of {', '.join(KEPT)}, as {next(iter(KEPT))}=30d")
        try:
            terms[name] = KEPT[name].term(term)
        except ValueError as error:
            raise WrongUse(f"{name} {error}") from None
    return terms
