"""Refusals as RFC 9457 problem documents, and the one table that says which error becomes which.

A problem names codes, paths, limits and scopes, and never a word of what the request said: not in `instance` either,
since a path can hold anything.
"""

from collections.abc import Callable, Mapping
from json import dumps
from math import ceil
from typing import Any
from uuid import uuid4

import asyncpg
import structlog
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from api.paths import errors_of
from gateways.key_store import KeyGone
from gateways.scopes import OtherScope
from intake.accept import SubjectErased
from intake.batcher import OtherAgent, OwnerGone
from intake.identity import InvalidHandle
from intake.keys import AdminNeeded, MinterRevoked, OtherVendor, OwnerErased, ReviewsItself
from intake.notes import Duplicate, NoSuchNote, Stands
from intake.refusal import Exceeded, PersonalData
from intake.refusals import InvalidMessage, TooLarge
from intake.review import Decided, LayerDown, NoSuchProposal, OwnProposal
from intake.state import Conflict as StateConflict
from intake.state import OtherMode
from memory.state import WrongValue
from models.accepting import Held, NothingThere
from models.note import opaque as note_id
from models.note_book import MemoryOff
from models.state_rules import StateOff
from recall.context import AgentDiffers
from recall.export import NobodyThere, NoSuchExport, NotReady, PackagesOff
from recall.quarantine import NotQuarantined, ReleasedAlready
from recall.restore import LiveAlready, NoSuchGeneration

MEDIA_TYPE = "application/problem+json"

_log = structlog.get_logger()


class Problem(Exception):
    """One refusal: its HTTP status, a code that never changes, a title for people, and named extensions."""

    def __init__(
        self, status: int, code: str, title: str, *, headers: Mapping[str, str] | None = None, **extensions: object
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.title = status, code, title
        self.headers, self.extensions = headers, extensions


def not_found() -> Problem:
    """The same whether it does not exist or is somebody else's."""
    return Problem(404, "not_found", "There is no such thing here")


def invalid(*errors: tuple[str, str]) -> Problem:
    """Each error is a path into the request, and what is taken there."""
    listed = [{"path": path, "why": why} for path, why in errors]
    return Problem(422, "invalid", "The request does not have the shape that is taken", errors=listed)


def too_large(limit: str, maximum: int) -> Problem:
    """Past a limit; nothing of the request was kept."""
    return Problem(413, "too_large", "The request is larger than is taken", limit=limit, maximum=maximum)


def unauthorized(error: str = "") -> Problem:
    """No key that lives; `error` is what the challenge says of the one that came."""
    challenge = {"WWW-Authenticate": f'Bearer realm="afterturn"{error}'}
    return Problem(401, "unauthorized", "An API key is needed, as a bearer token", headers=challenge)


def unavailable() -> Problem:
    """A store does not answer."""
    return Problem(503, "unavailable", "A store does not answer: try again", headers={"Retry-After": "1"})


def answer(error: Exception) -> Response:
    """The response to an error, whichever it is. What the table does not know is a fault of ours, and logged."""
    problem = _problem(error)
    instance = f"urn:uuid:{uuid4()}"
    if problem.status >= 500:
        _log.error("request_failed", code=problem.code, instance=instance, exc_info=error)
    document = {
        "type": f"urn:afterturn:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "instance": instance,
        **problem.extensions,
    }
    return Response(dumps(document), problem.status, dict(problem.headers or {}), MEDIA_TYPE)


async def answer_router(request: Request, error: Exception) -> Response:
    """For what no route takes: the router's own 404, and 405 with every method that the path takes."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        # The router's own error names the methods of one route of the path alone.
        error = HTTPException(405, headers={"Allow": ", ".join(request.app.methods(request.url.path))})
    return answer(error)


def _problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    for kind in type(error).__mro__:
        if kind in _TABLE:
            return _TABLE[kind](error)
    return _broken()


def _of_router(error: HTTPException) -> Problem:
    if error.status_code == 405:
        return Problem(405, "method_not_allowed", "This path does not take that method", headers=error.headers)
    if error.status_code == 404:
        return not_found()
    return Problem(error.status_code, "refused", "The request is not taken", headers=error.headers)


def _of_store(error: Exception) -> Problem:
    """A connection that is lost comes back; whatever else a store says is a fault of ours."""
    if isinstance(error, DBAPIError):  # SQLAlchemy's, around the driver's
        lost = error.connection_invalidated or isinstance(getattr(error.orig, "__cause__", None), _LOST)
    else:
        lost = not isinstance(error, ValueError)  # asyncpg's complaint about an argument is one too
    return unavailable() if lost else _broken()


def _broken() -> Problem:
    return Problem(500, "internal", "Something broke on our side")


def _exceeded(error: Exceeded) -> Problem:
    """Of an hour's limit it says when to come again; a ceiling stays until something is given up."""
    said: dict[str, Any] = {"limit": error.limit, "maximum": error.maximum}
    if error.wait is None:
        return Problem(409, "note_limit", "The agent has as many active notes as the space takes", **said)
    again = {"Retry-After": str(ceil(error.wait) or 1)}
    return Problem(429, "note_limit", "Too many within the hour", headers=again, **said)


def _personal(error: PersonalData) -> Problem:
    title = "Agent memory takes nothing about a person: write it again without"
    return Problem(422, "personal_data_in_agent_memory", title, kinds=list(error.kinds))


def _stale(error: StateConflict) -> Problem:
    title = "The state does not stand as the write takes it"
    return Problem(412, "agent_state_conflict", title, version=error.version, generation=error.generation)


def _conflict(code: str, title: str) -> Callable[[Any], Problem]:
    return lambda _: Problem(409, code, title)


_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InternalClientError,  # what the driver says of a connection that breaks under a statement
)

_TABLE: Mapping[type, Callable[[Any], Problem]] = {
    HTTPException: _of_router,
    RequestValidationError: lambda error: invalid(*errors_of(error.errors())),
    ClientDisconnect: lambda _: Problem(400, "incomplete", "The request's body did not arrive whole"),
    InvalidHandle: lambda error: invalid((error.where, error.why)),
    InvalidMessage: lambda error: invalid((error.path, error.why)),
    TooLarge: lambda error: too_large(error.limit_name, error.limit),
    asyncpg.CharacterNotInRepertoireError: lambda _: invalid(("request", "takes no NUL")),
    OtherAgent: lambda _: not_found(),
    AgentDiffers: lambda _: not_found(),
    OwnerGone: _conflict("subject_erased", "Whose memory this is was erased"),
    SubjectErased: _conflict("subject_erased", "This is from before the erasure of whom it is about"),
    KeyGone: _conflict("subject_erased", "Whose memory this is was erased"),
    NoSuchGeneration: lambda _: not_found(),
    LiveAlready: _conflict("generation_is_live", "That generation is the live one"),
    NobodyThere: lambda _: not_found(),
    NothingThere: lambda _: not_found(),
    Held: _conflict("legal_hold", "A hold forbids to delete anything of this"),
    NoSuchExport: lambda _: not_found(),
    NotReady: lambda error: Problem(409, "no_package", "There is no package to fetch now", state=error.state),
    PackagesOff: _conflict("packages_off", "This deployment has nowhere to put packages: AFTERTURN_PACKAGES_URL"),
    AdminNeeded: lambda _: Problem(403, "admin_needed", "Only an admin's key mints a key for others"),
    MinterRevoked: lambda _: unauthorized(', error="invalid_token"'),
    OtherVendor: _conflict("vendor_differs", "That agent is registered for another vendor"),
    OwnerErased: _conflict("subject_erased", "Whose key this was to be was erased"),
    ReviewsItself: lambda _: invalid(("scopes", "takes no agent_memory:review beside an agent")),
    MemoryOff: lambda _: Problem(403, "feature_off", "The space has no agent memory", feature="agent_memory"),
    StateOff: lambda _: Problem(403, "feature_off", "The space's agents keep no state", feature="agent_state"),
    OtherScope: lambda error: invalid(("scope.kind", f"takes {error.takes}")),
    OtherMode: lambda error: invalid(("mode", f"takes {error.takes}")),
    WrongValue: lambda error: invalid((error.path, error.why)),
    StateConflict: _stale,
    NoSuchNote: lambda _: not_found(),
    PersonalData: _personal,
    Exceeded: _exceeded,
    Duplicate: lambda error: Problem(409, "duplicate_note", "A note says the same", note=note_id(error.note)),
    Stands: lambda error: Problem(
        409, "note_changed", "The note does not stand so", state=error.status, version=error.version
    ),
    NoSuchProposal: lambda _: not_found(),
    Decided: lambda error: Problem(409, "already_decided", "The proposal is not open to that", state=error.state),
    OwnProposal: lambda _: Problem(403, "own_proposal", "Who proposed does not approve"),
    LayerDown: lambda _: unavailable(),
    NotQuarantined: lambda _: not_found(),
    ReleasedAlready: _conflict("already_released", "That turn was sent back before"),
    **dict.fromkeys((DBAPIError, *_LOST), _of_store),
}
