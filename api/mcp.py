"""/mcp: the Model Context Protocol by streamable HTTP, for the same keys and through the same door as everything else.

Every message is a request of its own that names its key: there are no sessions to outlive a key or to be taken over, and
any process answers any of them. What a tool does is in `mcp_tools`.
"""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from api import mcp_tools, note_shapes, problems
from api.desk import Calling
from api.door import Door
from api.note_shapes import AgentQuery
from api.problems import Problem
from config.settings import Http
from models.api_key import Scope

PATH = "/mcp"
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Spoken(Door):
    """The door of the protocol: what it refuses is told as an error of JSON-RPC, which is what its clients can show."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        enter = super().get_route_handler()

        async def speak(request: Request) -> Response:
            answer = await enter(request)
            return _as_error(answer) if answer.media_type == problems.MEDIA_TYPE else answer

        return speak


router = APIRouter(route_class=Spoken, strict_content_type=False)
_OPENS = {"security": [{"bearer": [str(Scope.AGENT_MEMORY_READ)]}], "requestBody": {}}


@router.post(PATH, include_in_schema=False, openapi_extra=_OPENS)
async def take_message(request: Request, caller: Calling, agent: AgentQuery = None) -> Response:
    """One message of the protocol. `agent` in the URL is whose memory the tools are about, for a key of no one agent."""
    manager: StreamableHTTPSessionManager = request.app.state.mcp
    if await TransportSecurityMiddleware(manager.security_settings).validate_request(request) is not None:
        raise Problem(421, "host_refused", "That host or origin is none of AFTERTURN_MCP_HOSTS")
    request.scope[mcp_tools.AGENT] = note_shapes.viewer_of(caller, agent)
    return _Conversing(manager, _checked(await request.body()))


@router.api_route(PATH, methods=["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"], include_in_schema=False)
async def refuse_others() -> Response:
    """There is nothing to listen to, and no session to end."""
    raise Problem(405, "method_not_allowed", "This path does not take that method", headers={"Allow": "POST"})


@asynccontextmanager
async def listening(http: Http) -> AsyncIterator[StreamableHTTPSessionManager]:
    """What `take_message` hands the messages to, while the block lasts."""
    manager = StreamableHTTPSessionManager(
        mcp_tools.server(),
        json_response=True,
        stateless=True,
        security_settings=_hosts(http.mcp_hosts),
        max_request_body_size=http.max_body,
    )
    async with manager.run():
        yield manager


class _Conversing(Response):
    """The protocol's answer to a message that was read at the door."""

    def __init__(self, manager: StreamableHTTPSessionManager, said: bytes) -> None:
        super().__init__()
        self._manager, self._said = manager, said

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        pending: list[Message] = [{"type": "http.request", "body": self._said, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        await self._manager.handle_request(scope, again, send)


def _checked(said: bytes) -> bytes:
    """A message of JSON-RPC; where it is none, the SDK's own answer would quote it."""
    try:
        jsonrpc_message_adapter.validate_json(said, by_name=False)
    except ValidationError:
        raise problems.invalid(("body", "takes one message of JSON-RPC")) from None
    return said


def _hosts(named: str | None) -> TransportSecuritySettings:
    """Who may be meant by a request: a page of somebody else's, whose name leads here, is not answered."""
    ours = [*_LOCAL, *(name.strip() for name in (named or "").split(",") if name.strip())]
    return TransportSecuritySettings(
        allowed_hosts=_at_any_port(ours),
        allowed_origins=_at_any_port([f"{scheme}://{host}" for host in ours for scheme in ("http", "https")]),
    )


def _at_any_port(names: Sequence[str]) -> list[str]:
    return [form for name in names for form in (name, f"{name}:*")]


def _as_error(answer: Response) -> Response:
    problem = json.loads(bytes(answer.body))
    code = INTERNAL_ERROR if answer.status_code >= 500 else INVALID_REQUEST
    why = "".join(f"; {error['path']} {error['why']}" for error in problem.get("errors", ()))
    error = {"code": code, "message": f"{problem['title']}{why} ({problem['code']})", "data": problem}
    kept = {
        name: value for name, value in answer.headers.items() if name in ("www-authenticate", "allow", "retry-after")
    }
    told = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    return Response(told, answer.status_code, kept, "application/json")
