"""/v1/agent-memory/notes: what agents learned about their work, and nothing about anybody."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from api import note_shapes, problems
from api.desk import AtDesk, Calling
from api.document import opens
from api.door import Door
from api.note_shapes import AgentQuery, Awaited, Created, EditAsk, Note, NoteAsk, NoteId, RetireAsk, Status, Tags, shown
from api.shapes import AgentName, AnyText, Ask
from intake import notes as writing
from intake.notes import Kept, Put
from models import note as notes
from models import note_book
from models import proposal as proposals
from models.api_key import Scope
from models.database import driver
from recall import agent_notes

router = APIRouter(prefix="/v1/agent-memory", route_class=Door, strict_content_type=False)

_READ = opens(Scope.AGENT_MEMORY_READ, 404, 422, body=False, of_a_person=False)
_WRITE = opens(Scope.AGENT_MEMORY_WRITE, 404, 409, 429, of_a_person=False)
_WRITE["responses"][202] = {"model": Awaited, "description": "A person has to look first."}


class NotePage(BaseModel):
    """Oldest first. `next` is the `after` of the next page, absent on the last one."""

    notes: list[Note]
    next: str | None = None


class VersionPage(BaseModel):
    """Oldest first. `next` is the `after` of the next page, absent on the last one."""

    versions: list[Note]
    next: int | None = None


class SearchAsk(Ask):
    """Words; with `tags`, only notes that have one of them."""

    agent: AgentName | None = None
    query: AnyText
    tags: Tags = Field([])
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class Found(Note):
    """A note, and how well it answers."""

    score: float


class Results(BaseModel):
    """Best first."""

    notes: list[Found]


@router.get("/notes", response_model_exclude_none=True, **_READ)
async def list_notes(
    desk: AtDesk,
    caller: Calling,
    agent: AgentQuery = None,
    status: Status = "active",
    after: Annotated[str | None, Query(pattern="^note_[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> NotePage:
    """The notes that the agent may read."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.viewer_of(caller, agent))
    async with desk.resources.database.begin(reader.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, reader.space)
        rows = await notes.listed(connection, reader, status, _id(after) if after else None, limit + 1)
    if rows is None:
        raise problems.not_found()
    page = [Note(**shown(row)) for row in rows[:limit]]
    return NotePage(notes=page, next=page[-1].id if len(rows) > limit else None)


@router.post("/notes", status_code=201, response_model=Created, **_WRITE)
async def write_note(ask: NoteAsk, desk: AtDesk, caller: Calling) -> Response:
    """Keeps a note, or proposes it. What is personal is refused, by its kinds."""
    agent = note_shapes.agent_of(caller, ask.agent)
    reader = await writing.reader(desk.resources, caller.credential, agent)
    who = await writing.author(desk.resources, caller.credential, reader)
    source = None
    if ask.evidence is not None:
        source = await writing.evidence(desk.resources, caller.credential.lookup_key, *ask.evidence.named)
    return _answer(await writing.write(desk.resources, who, ask.draft(), source), 201)


@router.get("/notes/{note}", response_model_exclude_none=True, **_READ)
async def read_note(note: NoteId, desk: AtDesk, caller: Calling, agent: AgentQuery = None) -> Note:
    """A note as it stands."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.viewer_of(caller, agent))
    async with desk.resources.database.begin(reader.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, reader.space)
        found = await notes.find(connection, reader, _id(note))
    if found is None:
        raise problems.not_found()
    return Note(**shown(found))


@router.patch("/notes/{note}", response_model=Created, **_WRITE)
async def edit_note(note: NoteId, ask: EditAsk, desk: AtDesk, caller: Calling, agent: AgentQuery = None) -> Response:
    """A new version of a note of the agent's own; the ones before stay to be read."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.agent_of(caller, ask.agent, agent))
    who = await writing.author(desk.resources, caller.credential, reader)
    return _answer(await writing.edit(desk.resources, who, _id(note), ask.changed(), ask.version), 200)


@router.post(
    "/notes/{note}/retire",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_WRITE, 404, of_a_person=False),
)
async def retire_note(
    note: NoteId, desk: AtDesk, caller: Calling, ask: RetireAsk | None = None, agent: AgentQuery = None
) -> Note:
    """A note of the agent's own is not served any more; it stays to be looked up."""
    named = note_shapes.agent_of(caller, None if ask is None else ask.agent, agent)
    reader = await writing.reader(desk.resources, caller.credential, named)
    who = await writing.author(desk.resources, caller.credential, reader)
    return Note(**shown(await writing.retire(desk.resources, who, _id(note))))


@router.delete(
    "/notes/{note}", status_code=204, **opens(Scope.AGENT_MEMORY_REVIEW, 404, 422, body=False, of_a_person=False)
)
async def delete_note(note: NoteId, desk: AtDesk, caller: Calling) -> Response:
    """The note is gone in every version. Also where agent memory is off."""
    note_shapes.check_reviewer(caller)
    await writing.delete(desk.resources, caller.credential.space, caller.credential.key_id, _id(note))
    return Response(status_code=204)


@router.post(
    "/notes/{note}/release",
    response_model_exclude_none=True,
    **opens(Scope.AGENT_MEMORY_REVIEW, 404, 422, body=False, of_a_person=False),
)
async def release_note(note: NoteId, desk: AtDesk, caller: Calling) -> Note:
    """A note that an erasure set aside, since it seemed to name the person, is again what it was."""
    note_shapes.check_reviewer(caller)
    space, actor = caller.credential.space, caller.credential.key_id
    return Note(**shown(await writing.release(desk.resources, space, actor, _id(note))))


@router.get("/notes/{note}/versions", response_model_exclude_none=True, **_READ)
async def list_versions(
    note: NoteId,
    desk: AtDesk,
    caller: Calling,
    agent: AgentQuery = None,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> VersionPage:
    """What the note said, version by version; to other agents, as far as each version was for them."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.viewer_of(caller, agent))
    async with desk.resources.database.begin(reader.space) as tx:
        connection = await driver(tx)
        await note_book.opened(connection, reader.space)
        if await notes.find(connection, reader, _id(note)) is None:
            raise problems.not_found()
        rows = await notes.versions(connection, reader, _id(note), after, limit + 1)
    page = [Note(**shown(row)) for row in rows[:limit]]
    return VersionPage(versions=page, next=page[-1].version if len(rows) > limit else None)


@router.post("/search", response_model_exclude_none=True, **opens(Scope.AGENT_MEMORY_READ, 404, of_a_person=False))
async def search_notes(ask: SearchAsk, desk: AtDesk, caller: Calling) -> Results:
    """Active notes that the agent may read and that hold a word of the query. Leaves a receipt."""
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.viewer_of(caller, ask.agent))
    wanted = agent_notes.Wanted(ask.query, tuple(ask.tags), ask.limit)
    found = await agent_notes.search(desk.resources, reader, caller.credential.key_id, wanted)
    return Results(notes=[Found(**shown(note), score=round(score, 4)) for note, score in found])


@router.get(
    "/export",
    response_class=StreamingResponse,
    **opens(Scope.OPERATOR, 404, body=False, of_a_person=False),
)
async def export_notes(desk: AtDesk, caller: Calling) -> StreamingResponse:
    """JSON Lines: every note with all its versions, then every proposal. Also where agent memory is off."""
    if caller.credential.agent is not None:  # it holds what all agents know
        raise problems.not_found()
    lines = agent_notes.export(desk.resources, caller.credential.space, caller.credential.key_id)
    first = await anext(lines, "")  # the receipt is written, whoever stops reading
    return StreamingResponse(_from(first, lines), media_type="application/jsonl")


async def _from(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for line in rest:
        yield line


def _answer(kept: Kept | Put, status: int) -> Response:
    if isinstance(kept, Put):
        return _json(Awaited(proposal_id=proposals.opaque(kept.proposal)), 202)
    near = [notes.opaque(one) for one in kept.similar]
    return _json(Created(**shown(kept.note), similar=near), status)


def _json(said: BaseModel, status: int) -> Response:
    return Response(said.model_dump_json(exclude_none=True), status, media_type="application/json")


def _id(opaque: str) -> UUID:
    return UUID(opaque.removeprefix("note_"))
