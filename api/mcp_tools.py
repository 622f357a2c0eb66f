"""The tools of agent memory, for a model that calls them: the same searching and the same writing as over HTTP.

A refusal is an error of the tool, for the model to read: the same problem that HTTP would answer.
"""

import json
from importlib.metadata import version
from typing import Any, TypeVar, cast

from fastapi import Request
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as Offered
from pydantic import Field, ValidationError

from api import note_shapes, problems
from api.auth import Caller
from api.desk import Desk, caller_of, desk_of
from api.note_shapes import Body, Kind, Seen, Tags, Title
from api.paths import errors_of
from api.problems import Problem
from api.shapes import AnyText, Ask
from intake import notes as writing
from intake.notes import Put
from memory.agent_tools import MOST_FOUND, REMEMBER, SEARCH, TOOLS, USUALLY_FOUND, Tool, told
from memory.note import Draft, Visibility
from models import note as notes
from models import note_book
from models import proposal as proposals
from models.api_key import Scope
from models.database import driver
from models.note_book import MemoryOff
from recall import agent_notes

AGENT = "afterturn.agent"  # where the route leaves whose memory it is, in the request's scope
_NEEDS = {SEARCH.name: Scope.AGENT_MEMORY_READ, REMEMBER.name: Scope.AGENT_MEMORY_WRITE}
_SAYS = "What agents learned about their own work. Nothing about customers is here, and nothing about them may be kept here."

Context = ServerRequestContext[Any, Request]
Shape = TypeVar("Shape", bound=Ask)


class _SearchAsk(Ask):
    query: AnyText
    tags: Tags = Field([])
    limit: int = Field(USUALLY_FOUND, ge=1, le=MOST_FOUND)


class _RememberAsk(Ask):
    kind: Kind
    title: Title
    body: Body
    tags: Tags = Field([])
    visibility: Seen = Visibility.SOURCE


def server() -> Server[Any]:
    """A server of the protocol that offers the tools to whoever may use them."""
    made = Server(
        "afterturn", version=version("afterturn"), instructions=_SAYS, on_list_tools=_offer, on_call_tool=_call
    )
    made.middleware.clear()  # its spans name what a model calls
    return made


async def _offer(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
    """The tools that the key's scopes open; none where the space has no agent memory."""
    desk, caller, _agent = _of(context)
    try:
        async with desk.resources.database.begin(caller.credential.space) as tx:
            await note_book.opened(await driver(tx), caller.credential.space)
    except MemoryOff:
        return ListToolsResult(tools=[])
    except Exception as error:  # noqa: BLE001 - the one table of errors says what each becomes
        raise MCPError(INTERNAL_ERROR, _problem(error)["title"]) from None
    return ListToolsResult(tools=[_offered(tool) for tool in TOOLS if _NEEDS[tool.name] in caller.credential.scopes])


def _offered(tool: Tool) -> Offered:
    reads = tool is SEARCH
    hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False, idempotent_hint=reads, open_world_hint=False)
    return Offered(name=tool.name, description=tool.description, input_schema=dict(tool.schema), annotations=hints)


async def _call(context: Context, said: CallToolRequestParams) -> CallToolResult:
    desk, caller, agent = _of(context)
    if said.name not in _NEEDS:
        raise MCPError(INVALID_PARAMS, "There is no such tool")
    try:
        _check(caller, _NEEDS[said.name])
        act = _search if said.name == SEARCH.name else _remember
        return _result(await act(desk, caller, agent, said.arguments or {}))
    except Exception as error:  # noqa: BLE001 - the one table of errors says what each becomes
        return _result(json.dumps(_problem(error)), refused=True)


async def _search(desk: Desk, caller: Caller, agent: str | None, arguments: dict[str, Any]) -> str:
    ask = _read(_SearchAsk, arguments)
    reader = await writing.reader(desk.resources, caller.credential, agent)
    wanted = agent_notes.Wanted(ask.query, tuple(ask.tags), ask.limit)
    found = await agent_notes.search(desk.resources, reader, caller.credential.key_id, wanted)
    return told((notes.opaque(note.id), note.draft) for note, _ in found)


async def _remember(desk: Desk, caller: Caller, agent: str | None, arguments: dict[str, Any]) -> str:
    ask = _read(_RememberAsk, arguments)
    reader = await writing.reader(desk.resources, caller.credential, note_shapes.agent_of(caller, agent))
    who = await writing.author(desk.resources, caller.credential, reader)
    draft = Draft(ask.kind, ask.title, ask.body, tuple(ask.tags), ask.visibility)
    kept = await writing.write(desk.resources, who, draft, None)
    if isinstance(kept, Put):
        says = "It is no note yet: a person has to approve it first. Do not write it again."
        return json.dumps({"status": "proposed", "proposal_id": proposals.opaque(kept.proposal), "says": says})
    near = [notes.opaque(one) for one in kept.similar]
    return json.dumps({"status": "kept", "id": notes.opaque(kept.note.id), "similar": near})


def _of(context: Context) -> tuple[Desk, Caller, str | None]:
    request = cast("Request", context.request)
    return desk_of(request), caller_of(request), request.scope[AGENT]


def _check(caller: Caller, scope: Scope) -> None:
    if scope not in caller.credential.scopes:
        raise Problem(403, "scope_missing", "The API key lacks the scope", scope=scope)


def _read(shape: type[Shape], arguments: dict[str, Any]) -> Shape:
    said = {
        name: value for name, value in arguments.items() if value is not None
    }  # models say null for what they leave out
    try:
        return shape.model_validate(said)
    except ValidationError as error:
        raise problems.invalid(*errors_of(error.errors(include_input=False, include_url=False), "body")) from None


def _problem(error: Exception) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(bytes(problems.answer(error).body))
    return said


def _result(text: str, *, refused: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=refused)
