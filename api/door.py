"""The way in, the same for every route: who calls, may they, how much do they bring; and every error becomes a problem."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from api import bodies, problems
from api.desk import CALLER, desk_of
from api.paths import errors_of
from models.api_key import Scope


class Door(APIRoute):
    """A route whose scope is the one that its OpenAPI document names. The key is checked before the body is read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        serve = super().get_route_handler()
        scope = _scope(self.openapi_extra)
        takes_body = self.body_field is not None or "requestBody" in (self.openapi_extra or {})

        async def enter(request: Request) -> Response:
            return await let_in(request, scope, serve, takes_body=takes_body)

        return enter


async def let_in(
    request: Request, scope: Scope | None, serve: Callable[[Any], Coroutine[Any, Any, Response]], *, takes_body: bool
) -> Response:
    """What `serve` answers a caller who may call, or the problem."""
    desk = desk_of(request)
    try:
        if scope is not None:
            await desk.gate.pass_through()
            request.scope[CALLER] = await desk.doorman.admit(request.headers, scope)
        if takes_body:
            request = ReadRequest(request, *await bodies.read_json(request, desk.limits.body_bytes))
        return await serve(request)
    except Exception as error:  # noqa: BLE001 - the one table of errors says what each becomes
        return problems.answer(error)


Shape = TypeVar("Shape", bound=BaseModel)


class ReadRequest(Request):
    """A request whose body has been read; `said` is what it says as JSON, None where it is empty."""

    def __init__(self, request: Request, body: bytes, said: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body, self.said = body, said

    async def json(self) -> Any:
        return self.said

    def read_as(self, shape: type[Shape]) -> Shape:
        """What the body says, in a shape; 422 where it has another."""
        try:
            return shape.model_validate(self.said)
        except ValidationError as error:
            raise problems.invalid(*errors_of(error.errors(include_input=False, include_url=False), "body")) from None


def _scope(extra: dict[str, Any] | None) -> Scope | None:
    named = (extra or {}).get("security")
    return Scope(named[0]["bearer"][0]) if named else None
