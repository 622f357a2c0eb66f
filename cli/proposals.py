"""`afterturn proposals`: what waits for a person before it is a note, shown and decided."""

import difflib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from cli import spaces
from cli.actor import actor
from cli.failure import Failed, WrongUse
from cli.output import answer, table
from cli.reach import with_stores
from intake import notes as writing
from intake import review
from intake.notes import Duplicate, Stands
from intake.refusal import Exceeded, PersonalData
from intake.review import Decided, LayerDown, NoSuchProposal, OwnProposal, Reason, Reviewer
from jobs.resources import Resources
from memory.note import LONGEST_BODY, LONGEST_TAG, LONGEST_TITLE, MOST_TAGS, Draft, Visibility, folded_tags
from models import note as notes
from models import proposal as proposals
from models.database import driver
from models.note import Reader, Written
from models.note_book import MemoryOff
from models.proposal import Waiting

Told = TypeVar("Told")

STATES = ("pending", "approved", "rejected", "expired", "quarantined")

_TITLES = ("ID", "STATE", "ORIGIN", "AGENT", "KIND", "TITLE", "MADE")
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Edits:
    """What is to be said otherwise; None stays as it is. `tags` by commas."""

    title: str | None = None
    body: str | None = None
    tags: str | None = None
    visibility: str | None = None

    def changes(self) -> dict[str, Any]:
        """The members of a draft; WrongUse where one cannot be a note's."""
        said: dict[str, Any] = {}
        for name, text, most in (("title", self.title, LONGEST_TITLE), ("body", self.body, LONGEST_BODY)):
            if text is not None:
                said[name] = text.strip()
                _require(0 < len(said[name]) <= most, f"--{name} takes 1 to {most} characters")
        if self.tags is not None:
            said["tags"] = folded_tags(self.tags.split(","))
            fits = len(said["tags"]) <= MOST_TAGS and all(len(tag) <= LONGEST_TAG for tag in said["tags"])
            _require(fits, f"--tags takes {MOST_TAGS} at most, of {LONGEST_TAG} characters")
        if self.visibility is not None:
            _require(self.visibility in set(Visibility), f"--visibility takes {', '.join(Visibility)}")
            said["visibility"] = Visibility(self.visibility)
        return said


def show_all(space: str, state: str | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Lists a space's proposals, oldest first, of one state or all."""
    _require(state in (None, *STATES), f"--state takes {', '.join(STATES)}")
    found = with_stores(data_dir, lambda resources: listed(resources, space, state))
    answer([_document(one) for one in found], table(map(_row, found), _TITLES), as_json=as_json)


def show(space: str, proposal: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Shows one, and how it differs from the notes that there are already."""
    one, others = with_stores(data_dir, lambda resources: beside(resources, space, proposal))
    document = _document(one) | {"beside": [notes.opaque(other.id) for other in others]}
    answer(document, _lines(one, others), as_json=as_json)


def approve(space: str, proposal: str, edits: Edits, data_dir: Path | None, *, as_json: bool) -> None:
    """Makes it a note."""
    changes = edits.changes()
    note = with_stores(data_dir, lambda resources: approved(resources, space, proposal, changes))
    told = {"id": proposal, "state": "approved", "note": notes.opaque(note.id), "version": note.version}
    answer(told, [f"{proposal} is {told['note']} now, in version {note.version}."], as_json=as_json)


def reject(space: str, proposal: str, reason: str, data_dir: Path | None, *, as_json: bool) -> None:
    """Lets it come to nothing."""
    _require(reason in set(Reason), f"--reason takes {', '.join(Reason)}")
    with_stores(data_dir, lambda resources: rejected(resources, space, proposal, Reason(reason)))
    told = {"id": proposal, "state": "rejected", "reason_code": reason}
    answer(told, [f"{proposal} is rejected."], as_json=as_json)


async def listed(resources: Resources, space: str, state: str | None) -> list[Waiting]:
    """All of a space's proposals of one state, or of every one."""
    place = await spaces.find(resources.database, space)
    found: list[Waiting] = []
    after: UUID | None = None
    while True:
        async with resources.database.begin(place.id) as tx:
            page = await proposals.listed(await driver(tx), place.id, state, after, _PAGE) or []
        found += page
        if len(page) < _PAGE:
            return found
        after = page[-1].id


async def beside(resources: Resources, space: str, proposal: str) -> tuple[Waiting, list[Written]]:
    """A proposal; the note that it would change, and those that say nearly the same. Failed where there is none."""
    place, named = await spaces.find(resources.database, space), _id(proposal)
    async with resources.database.begin(place.id) as tx:
        connection = await driver(tx)
        found = await proposals.find(connection, place.id, named)
        if found is None:
            raise _unknown(space)
        everybody, changes = Reader(place.id, None), found.proposed.note
        near = await writing.similar(connection, everybody, found.proposed.draft, changes)
        others = [await notes.find(connection, everybody, one) for one in (changes, *near) if one is not None]
    return found, [one for one in others if one is not None]


async def approved(resources: Resources, space: str, proposal: str, changes: dict[str, Any]) -> Written:
    """As `review.approve`, by the operating system's user. Failed says why not."""
    return await _decided(resources, space, lambda who: review.approve(resources, who, _id(proposal), changes))


async def rejected(resources: Resources, space: str, proposal: str, reason: Reason) -> Waiting:
    """As `review.reject`, by the operating system's user. Failed says why not."""
    return await _decided(resources, space, lambda who: review.reject(resources, who, _id(proposal), reason))


async def _decided(resources: Resources, space: str, decide: Callable[[Reviewer], Coroutine[Any, Any, Told]]) -> Told:
    place = await spaces.find(resources.database, space)
    who = await actor(resources, place)
    key = await resources.keys.key(place.lookup_key)
    try:
        return await decide(Reviewer(place.id, who, key.digest(who, "principal")))
    except NoSuchProposal:
        raise _unknown(space) from None
    except Decided as decided:
        raise Failed(f"the proposal is {decided.state} already") from None
    except (PersonalData, Duplicate, Exceeded, Stands, OwnProposal, LayerDown, MemoryOff) as refused:
        raise Failed(_why(refused)) from None


def _why(refused: Exception) -> str:
    match refused:
        case PersonalData():
            return f"agent memory takes nothing about a person; it holds {', '.join(refused.kinds)}"
        case Duplicate():
            return f"{notes.opaque(refused.note)} says the same"
        case Exceeded():
            return f"past {refused.limit}, which is {refused.maximum}"
        case Stands():
            return f"the note that it would change is {refused.status}, in version {refused.version}"
        case _:
            return _PLAINLY[type(refused)]


_PLAINLY = {
    LayerDown: "the analyzer does not answer, and nothing is approved without it: try again",
    OwnProposal: "who proposed does not approve",
    MemoryOff: "the space has no agent memory: the features document turns it on",
}


def _id(proposal: str) -> UUID:
    try:
        return UUID(proposal.removeprefix("prop_"))
    except ValueError:
        raise WrongUse("a proposal is named as `proposals list` shows it: prop_…") from None


def _unknown(space: str) -> Failed:
    return Failed(f"the space {space} has no such proposal: `afterturn proposals list --space {space}` shows them")


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise WrongUse(otherwise)


def _row(one: Waiting) -> tuple[object, ...]:
    draft = one.proposed.draft
    named = proposals.opaque(one.id)
    return named, one.state, one.proposed.origin, one.agent, draft.kind, draft.title, one.created_at


def _document(one: Waiting) -> dict[str, Any]:
    proposed, draft = one.proposed, one.proposed.draft
    return {
        "id": proposals.opaque(one.id),
        "state": one.state,
        "origin": proposed.origin,
        "agent": one.agent,
        "vendor": one.vendor,
        "kind": draft.kind,
        "title": draft.title,
        "body": draft.body,
        "tags": list(draft.tags),
        "visibility": draft.visibility,
        "evidence": None if proposed.evidence is None else f"evd_{proposed.evidence.digest.hex()}",
        "note": None if proposed.note is None else notes.opaque(proposed.note),
        "reason_code": one.reason_code,
        "decided_by": one.decided_by,
        "created_at": one.created_at,
        "decided_at": one.decided_at,
    }


def _lines(one: Waiting, others: list[Written]) -> Iterator[str]:
    for name, value in _document(one).items():
        if value not in (None, []):
            yield f"{name:12}{', '.join(value) if isinstance(value, list) else value}"
    for other in others:
        yield ""
        yield from difflib.unified_diff(
            _told(other.draft), _told(one.proposed.draft), notes.opaque(other.id), proposals.opaque(one.id), lineterm=""
        )


def _told(draft: Draft) -> list[str]:
    said = [f"kind {draft.kind}", f"tags {', '.join(draft.tags)}", f"visibility {draft.visibility}"]
    return [*said, draft.title, *draft.body.splitlines()]
